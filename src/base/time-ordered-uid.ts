import { randomInt } from 'node:crypto';

/** Milliseconds fit into what is left of 64 bits until 2109. */
const RANDOM_BITS = 22;

let last = 0n;

/**
 * A fresh uid that sorts behind all before it. An import then fills index pages one after another; random uids touch
 * a page each, and are five times as slow at some ten thousand rows.
 */
export function timeOrderedUid(parent: string, now: number): string {
  const fresh = (BigInt(now) << BigInt(RANDOM_BITS)) | BigInt(randomInt(2 ** RANDOM_BITS));
  last = fresh > last ? fresh : last + 1n;
  return `${parent}/${last.toString(16).padStart(16, '0')}`;
}
