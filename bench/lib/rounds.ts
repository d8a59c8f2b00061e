import { median } from './result.ts';

export interface Compared {
  /** The median over the rounds of a divided by b: what disturbs the machine for a while disturbs both. */
  readonly ratio: number;
  readonly a: number;
  readonly b: number;
}

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
  return { ratio: median(as.map((value, at) => value / (bs[at] ?? Number.NaN))), a: median(as), b: median(bs) };
}
