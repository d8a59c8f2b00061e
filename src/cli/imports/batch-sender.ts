import { setTimeout as wait } from 'node:timers/promises';
import type { JsonValue } from '@bufbuild/protobuf';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { ImportRecord } from './import-item.ts';

/** Batches in flight: the server processes one while the next ones are read and sent. */
const MAX_PENDING = 3;

export interface BatchSender<T extends JsonValue> {
  /** Resolves when another batch can be added. Rejects when an earlier batch failed. */
  add(batch: readonly ImportRecord<T>[]): Promise<void>;
  /** Resolves when all batches are done. Rejects when one failed. */
  flush(): Promise<void>;
}

interface PendingBatch {
  readonly ids: ReadonlySet<string>;
  readonly done: Promise<void>;
}

/** Sends a few batches concurrently. Records with the same id are sent in their order. */
export function createBatchSender<T extends JsonValue>(
  send: (batch: readonly ImportRecord<T>[]) => Promise<void>,
  retryDelaysMs: readonly number[],
): BatchSender<T> {
  const pending = new Set<PendingBatch>();
  const failures: unknown[] = [];
  let hasSucceeded = false;

  /**
   * Retries transient errors, which is safe because imports are idempotent. Before the first success nothing is
   * retried.
   */
  async function sendWithRetries(batch: readonly ImportRecord<T>[]): Promise<void> {
    for (const delayMs of retryDelaysMs) {
      try {
        return await send(batch);
      } catch (error) {
        if (!hasSucceeded || !isTransient(error)) throw error;
        await wait(delayMs);
      }
    }
    await send(batch);
  }

  function start(batch: readonly ImportRecord<T>[], ids: ReadonlySet<string>): void {
    const done = sendWithRetries(batch).then(
      () => {
        hasSucceeded = true;
        pending.delete(entry);
      },
      (error) => {
        failures.push(error);
        pending.delete(entry);
      },
    );
    const entry = { ids, done };
    pending.add(entry);
  }

  const throwFailure = (): void => {
    if (failures.length > 0) throw failures[0];
  };

  return {
    async add(batch) {
      const ids = new Set(batch.map(({ id }) => id).filter((id) => id !== ''));
      for (const entry of [...pending]) if (!entry.ids.isDisjointFrom(ids)) await entry.done;
      while (pending.size >= MAX_PENDING) await Promise.race([...pending].map(({ done }) => done));
      throwFailure();
      start(batch, ids);
    },
    async flush() {
      while (pending.size > 0) await Promise.all([...pending].map(({ done }) => done));
      throwFailure();
    },
  };
}

const transientCodes: readonly ExitCode[] = [ExitCode.unavailable, ExitCode.conflict];
const isTransient = (error: unknown): boolean => error instanceof CliError && transientCodes.includes(error.exitCode);
