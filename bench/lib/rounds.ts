import { median } from './result.ts';

export interface Compared {
  /** The median over the rounds of a divided by b: what disturbs the machine for a while disturbs both. */
  readonly ratio: number;
  readonly a: number;
  readonly b: number;
}

/** After so many seconds of load V8 has compiled well what runs hot: a server that just started takes half as long again. */
const WARM_SECONDS = 6;
/** Short and many: what disturbs the machine then disturbs few of them. */
const ROUNDS = 5;
const SECONDS = 1;

/** Puts load on two servers until both are as fast as they get, and then compares them. */
export async function warmAndCompare(a: Measured, b: Measured, warmSeconds = WARM_SECONDS): Promise<Compared> {
  await a(warmSeconds);
  await b(warmSeconds);
  return interleaved(
    ROUNDS,
    () => a(SECONDS),
    () => b(SECONDS),
  );
}

/** So many seconds of it, and how fast it was. */
type Measured = (seconds: number) => Promise<number>;

/** Measures two things in turn, again and again. */
export async function interleaved(
  rounds: number,
  a: () => Promise<number> | number,
  b: () => Promise<number> | number,
): Promise<Compared> {
  const as: number[] = [];
  const bs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // Whoever comes second finds a warmer machine, so they take turns in that too.
    if (round % 2 === 0) as.push(await a());
    bs.push(await b());
    if (round % 2 === 1) as.push(await a());
  }
  const ratios = as.map((value, at) => value / (bs[at] ?? Number.NaN)).filter((ratio) => !Number.isNaN(ratio));
  return { ratio: median(ratios), a: median(as), b: median(bs) };
}
