import { randomFillSync } from 'node:crypto';

/** The parent of everything that has no parent. */
export const ROOT = '/';

const UID = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/;

/** Deeper uids than this are refused: each level costs index rows for everything below it. */
export const MAX_DEPTH = 16;

export const isUid = (text: string): boolean => text.length <= 40 + MAX_DEPTH * 17 && UID.test(text);

/** A fresh uid below `parent`: 8 random bytes as a suffix, or 20 for a root. */
export const newUid = (parent: string): string => (parent === ROOT ? randomHex(20) : `${parent}/${randomHex(8)}`);

/** Asking the system for randomness costs some microseconds, however little is asked for. */
const pool = Buffer.alloc(4096);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString('hex', used - bytes, used);
}

export function parentOf(uid: string): string {
  const cut = uid.lastIndexOf('/');
  return cut < 0 ? ROOT : uid.slice(0, cut);
}

export const rootOf = (uid: string): string => uid.slice(0, 40);

/** The last path segment. */
export const suffixOf = (uid: string): string => uid.slice(uid.lastIndexOf('/') + 1);

export const depthOf = (uid: string): number => (uid.length - 40) / 17;

/** From the root down to the parent of `uid`; empty for a root. */
export function ancestorsOf(uid: string): string[] {
  const found: string[] = [];
  for (let cut = uid.indexOf('/'); cut > 0; cut = uid.indexOf('/', cut + 1)) found.push(uid.slice(0, cut));
  return found;
}

/** Whether `uid` is `scope` itself or lies below it. */
export const isWithin = (uid: string, scope: string): boolean =>
  uid.startsWith(scope) && (uid.length === scope.length || uid[scope.length] === '/');

/** Whether `uid` lies within one of `scopes`, which are the outermost of something: one look, however many there are. */
export function isWithinAny(uid: string, scopes: readonly string[]): boolean {
  let [low, high] = [0, scopes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scopes[middle] as string) <= uid) low = middle + 1;
    else high = middle;
  }
  // The last that does not come behind it.
  const nearest = scopes[low - 1];
  return nearest !== undefined && isWithin(uid, nearest);
}

/** Those of `uids` that lie in no other of them, each once and in order. */
export function outermost(uids: readonly string[]): string[] {
  const found: string[] = [];
  // In order, what lies below a uid follows it at once: no other sign of a uid comes before `/`.
  for (const uid of uids.toSorted()) {
    const last = found.at(-1);
    if (last === undefined || !isWithin(uid, last)) found.push(uid);
  }
  return found;
}

/** The bounds, both excluded, of every uid below `uid`: `0` follows `/` in ASCII. */
export const rangeBelow = (uid: string): [low: string, high: string] => [uid, `${uid}0`];
