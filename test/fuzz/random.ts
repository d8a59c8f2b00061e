/** A seeded source of random choices: the same seed gives the same choices (mulberry32). */
export interface Random {
  /** A number from 0 to less than `max`. */
  below(max: number): number;
  /** Whether an event of this probability happens. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  bytes(length: number): Buffer;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (max: number): number => Math.floor(next() * max);
  return {
    below,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)] as never,
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}
