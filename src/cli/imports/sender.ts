import { setTimeout as wait } from 'node:timers/promises';
import type { JsonValue } from '@bufbuild/protobuf';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { Taken } from './item.ts';

/** While the server works on one batch, the next is read, and another is on its way. */
const UNDER_WAY = 3;

export interface Sender<T extends JsonValue> {
  /** Returns when there is room for more; throws when something sent before has failed. */
  add(batch: readonly Taken<T>[]): Promise<void>;
  /** Returns when all that was sent is answered. */
  settle(): Promise<void>;
}

interface Errand {
  readonly ids: ReadonlySet<string>;
  readonly done: Promise<void>;
}

/** Sends batches, a few at a time. Records of the same id go in the order they came in. */
export function createSender<T extends JsonValue>(
  deliver: (batch: readonly Taken<T>[]) => Promise<void>,
  waitsMs: readonly number[],
): Sender<T> {
  const underWay = new Set<Errand>();
  const failures: unknown[] = [];
  let hasAnswered = false;

  /** An import can be sent again without harm, so a server that went away gets time to come back; one never met does not. */
  async function persist(batch: readonly Taken<T>[]): Promise<void> {
    for (const pauseMs of waitsMs) {
      try {
        return await deliver(batch);
      } catch (error) {
        if (!hasAnswered || !isPassing(error)) throw error;
        await wait(pauseMs);
      }
    }
    await deliver(batch);
  }

  function start(batch: readonly Taken<T>[], ids: ReadonlySet<string>): void {
    const done = persist(batch).then(
      () => {
        hasAnswered = true;
        underWay.delete(errand);
      },
      (error) => {
        failures.push(error);
        underWay.delete(errand);
      },
    );
    const errand = { ids, done };
    underWay.add(errand);
  }

  const throwFailure = (): void => {
    if (failures.length > 0) throw failures[0];
  };

  return {
    async add(batch) {
      const ids = new Set(batch.map(({ id }) => id).filter((id) => id !== ''));
      for (const errand of [...underWay]) if (!errand.ids.isDisjointFrom(ids)) await errand.done;
      while (underWay.size >= UNDER_WAY) await Promise.race([...underWay].map(({ done }) => done));
      throwFailure();
      start(batch, ids);
    },
    async settle() {
      while (underWay.size > 0) await Promise.all([...underWay].map(({ done }) => done));
      throwFailure();
    },
  };
}

const passing: readonly ExitCode[] = [ExitCode.unavailable, ExitCode.conflict];
const isPassing = (error: unknown): boolean => error instanceof CliError && passing.includes(error.exitCode);
