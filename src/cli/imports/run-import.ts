import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ClientContext } from '../context.ts';
import { errorMessage } from '../error-message.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { print } from '../output/print.ts';
import { createBatchSender } from './batch-sender.ts';
import { type BatchLimits, batchesOf, defaultLimits } from './batches.ts';
import type { ImportItem, ImportRecord } from './import-item.ts';
import { type ReadProgress, startProgress } from './progress.ts';
import { createRefusalLog, type RefusalLog, refusalJson, refusalLines } from './refusal-log.ts';

/** Sends one batch and returns a wharfinger.imports.v1.Outcome. Must be idempotent, because it is retried. */
export type SendBatch<T extends JsonValue> = (records: readonly T[]) => Promise<JsonObject>;

export interface ImportJob<T extends JsonValue> {
  /** The name of the records in messages, such as `advisories`. */
  readonly what: string;
  readonly items: AsyncIterable<ImportItem<T>>;
  readonly send: SendBatch<T>;
  readonly readProgress?: ReadProgress;
  /** The file to write all refusals to. */
  readonly refusalsFile?: string | undefined;
  readonly limits?: BatchLimits;
  /** The delays before the retries of a batch. */
  readonly retryDelaysMs?: readonly number[];
}

interface Counts {
  created: number;
  updated: number;
  unchanged: number;
}

/** Imports all items and prints a summary. Throws at the end if records were refused. */
export async function runImport<T extends JsonValue>(context: ClientContext, job: ImportJob<T>): Promise<void> {
  const { what, items, send, readProgress, limits = defaultLimits, retryDelaysMs = [1000, 3000, 9000] } = job;
  const { terminal, output } = context;
  const counts: Counts = { created: 0, updated: 0, unchanged: 0 };
  const refusals = createRefusalLog(job.refusalsFile);
  const progress = startProgress({ terminal, isQuiet: output === 'json', what }, readProgress);
  const started = performance.now();
  const done = (): number => counts.created + counts.updated + counts.unchanged + refusals.count;

  const sender = createBatchSender<T>(async (batch) => {
    recordOutcome(batch, await send(batch.map(({ record }) => record)), counts, refusals);
    progress.update(done());
  }, retryDelaysMs);
  try {
    for await (const batch of batchesOf(items, limits, refusals.add)) await sender.add(batch);
    await sender.flush();
  } catch (error) {
    // The outcomes of the batches in flight are counted too.
    await sender.flush().catch(() => {});
    throw withResumeAdvice(error, what, done());
  } finally {
    progress.end();
    refusals.close();
  }
  printSummary(context, { what, counts, refusals, seconds: (performance.now() - started) / 1000 });
}

function recordOutcome<T extends JsonValue>(
  batch: readonly ImportRecord<T>[],
  outcome: JsonObject,
  counts: Counts,
  refusals: RefusalLog,
): void {
  counts.created += Number(outcome.created ?? 0);
  counts.updated += Number(outcome.updated ?? 0);
  counts.unchanged += Number(outcome.unchanged ?? 0);
  for (const { index, id, field = '', reason = '' } of (outcome.refusals ?? []) as Partial<Record<string, string>>[]) {
    const item = batch[Number(index ?? 0)];
    if (item) refusals.add({ location: item.location, id: id || item.id, field, reason });
  }
}

/** Adds the advice that an interrupted import can be run again. */
function withResumeAdvice(error: unknown, what: string, done: number): unknown {
  if (done === 0) return error;
  const { exitCode, details } = error instanceof CliError ? error : { exitCode: ExitCode.failure, details: [] };
  const advice = `stopped after ${done} ${what}; run the command again to continue, imported records are not imported twice`;
  return new CliError(exitCode, errorMessage(error), [...details, advice]);
}

interface Summary {
  readonly what: string;
  readonly counts: Counts;
  readonly refusals: RefusalLog;
  readonly seconds: number;
}

function printSummary(context: ClientContext, { what, counts, refusals, seconds }: Summary): void {
  const { created, updated, unchanged } = counts;
  const refused = refusals.count;
  const rate = Math.round((created + updated + unchanged + refused) / Math.max(seconds, 0.001));
  const summary = {
    ...counts,
    refused,
    refusals: refusals.shown.map(refusalJson),
    seconds: Number(seconds.toFixed(3)),
  };
  const numbers = `${created} created, ${updated} updated, ${unchanged} unchanged, ${refused} refused`;
  print(context, summary, () => `${what}: ${numbers} in ${seconds.toFixed(1)} s (${rate}/s)\n`);
  if (refused > 0) throw new CliError(ExitCode.invalid, `refused ${refused} of the ${what}:`, refusalLines(refusals));
}
