import { median } from './result.ts';

export interface Comparison {
  /**
   * The median of a divided by b, over all rounds. Other load on the machine slows down both in a round, so the ratio
   * is more stable than the two figures.
   */
  readonly ratio: number;
  readonly a: number;
  readonly b: number;
}

/** V8 needs so many seconds of load to optimize a server. Requests take 1.5 times as long right after the start. */
const WARM_UP_SECONDS = 6;
/** Many short rounds: a short disturbance of the machine affects few of them. */
const ROUNDS = 5;
const ROUND_SECONDS = 1;

/** Measures for a number of seconds, and returns operations per second. */
type Measure = (seconds: number) => Promise<number>;

/** Runs both for the warm-up time, then compares them. */
export async function warmUpAndCompare(a: Measure, b: Measure, warmUpSeconds = WARM_UP_SECONDS): Promise<Comparison> {
  await a(warmUpSeconds);
  await b(warmUpSeconds);
  return compareInTurn(
    ROUNDS,
    () => a(ROUND_SECONDS),
    () => b(ROUND_SECONDS),
  );
}

/** Runs both measurements alternately, one of each in a round. */
export async function compareInTurn(
  rounds: number,
  a: () => Promise<number> | number,
  b: () => Promise<number> | number,
): Promise<Comparison> {
  const as: number[] = [];
  const bs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // The second one finds warmer caches, so the order alternates.
    if (round % 2 === 0) as.push(await a());
    bs.push(await b());
    if (round % 2 === 1) as.push(await a());
  }
  const ratios = as.map((value, at) => value / (bs[at] ?? Number.NaN)).filter((ratio) => !Number.isNaN(ratio));
  return { ratio: median(ratios), a: median(as), b: median(bs) };
}
