import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Context } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { messageOf } from '../failure.ts';
import { print } from '../output/print.ts';
import { letYoungSpaceGrow } from '../server/young-space.ts';
import { type BatchLimits, batchesOf, defaultLimits } from './batches.ts';
import type { Item, Taken } from './item.ts';
import { type Reading, startProgress } from './progress.ts';
import { flat, keepRefusals, type Refusals, refusalLines } from './refusals.ts';
import { createSender } from './sender.ts';

/** Sends one batch and answers a wharfinger.imports.v1.Outcome. Must change nothing when the same is sent again. */
export type SendBatch<T extends JsonValue> = (records: readonly T[]) => Promise<JsonObject>;

export interface Import<T extends JsonValue> {
  /** What is imported, for people: `advisories`. */
  readonly what: string;
  readonly items: AsyncIterable<Item<T>>;
  readonly send: SendBatch<T>;
  /** How far the reading is, where somebody knows. */
  readonly reading?: Reading;
  /** Where to write everything that was refused. */
  readonly refusalsFile?: string | undefined;
  readonly limits?: BatchLimits;
  /** How long to wait before each new try when the server is away for a while. */
  readonly waitsMs?: readonly number[];
}

interface Counts {
  created: number;
  updated: number;
  unchanged: number;
}

/** Reads, sends, and says what became of it. Throws when something was refused, after everything else is in. */
export async function runImport<T extends JsonValue>(context: Context, job: Import<T>): Promise<void> {
  const { what, items, send, reading, limits = defaultLimits, waitsMs = [1000, 3000, 9000] } = job;
  const { terminal, output } = context;
  // Hardly anything of a record outlives its batch; without a bound, V8 takes 100 MB more for what is gone already.
  letYoungSpaceGrow(false);
  const counts: Counts = { created: 0, updated: 0, unchanged: 0 };
  const refusals = keepRefusals(job.refusalsFile);
  const progress = startProgress({ terminal, isQuiet: output === 'json', what }, reading);
  const started = performance.now();
  const done = (): number => counts.created + counts.updated + counts.unchanged + refusals.count;

  const sender = createSender<T>(async (batch) => {
    takeStock(batch, await send(batch.map(({ record }) => record)), counts, refusals);
    progress.tell(done());
  }, waitsMs);
  try {
    for await (const batch of batchesOf(items, limits, refusals.add)) await sender.add(batch);
    await sender.settle();
  } catch (error) {
    // What is still under way may get in, and be refused in part; both are counted.
    await sender.settle().catch(() => {});
    throw interrupted(error, what, done());
  } finally {
    progress.end();
    refusals.close();
  }
  summarize(context, { what, counts, refusals, seconds: (performance.now() - started) / 1000 });
}

function takeStock<T extends JsonValue>(
  batch: readonly Taken<T>[],
  outcome: JsonObject,
  counts: Counts,
  refusals: Refusals,
): void {
  counts.created += Number(outcome.created ?? 0);
  counts.updated += Number(outcome.updated ?? 0);
  counts.unchanged += Number(outcome.unchanged ?? 0);
  for (const { index, id, field = '', reason = '' } of (outcome.refusals ?? []) as Partial<Record<string, string>>[]) {
    const item = batch[Number(index ?? 0)];
    if (item) refusals.add({ origin: item.origin, id: id || item.id, field, reason });
  }
}

/** What was sent is in, and sending it again changes nothing; that is worth saying to somebody whose import broke off. */
function interrupted(error: unknown, what: string, done: number): unknown {
  if (done === 0) return error;
  const { exitCode, details } = error instanceof CliError ? error : { exitCode: ExitCode.failure, details: [] };
  const advice = `stopped after ${done} ${what}; run it again to go on, what is in already stays as it is`;
  return new CliError(exitCode, messageOf(error), [...details, advice]);
}

interface Summary {
  readonly what: string;
  readonly counts: Counts;
  readonly refusals: Refusals;
  readonly seconds: number;
}

function summarize(context: Context, { what, counts, refusals, seconds }: Summary): void {
  const { created, updated, unchanged } = counts;
  const refused = refusals.count;
  const rate = Math.round((created + updated + unchanged + refused) / Math.max(seconds, 0.001));
  const answer = { ...counts, refused, refusals: refusals.shown.map(flat), seconds: Number(seconds.toFixed(3)) };
  const numbers = `${created} created, ${updated} updated, ${unchanged} unchanged, ${refused} refused`;
  print(context, answer, () => `${what}: ${numbers} in ${seconds.toFixed(1)} s (${rate}/s)\n`);
  if (refused > 0) throw new CliError(ExitCode.invalid, `${refused} of the ${what} refused:`, refusalLines(refusals));
}
