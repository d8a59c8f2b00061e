import { randomFillSync } from 'node:crypto';

/** Stands for the parent of a resource that has no parent. */
export const ROOT = '/';

const UID = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/;

/** The most levels of a uid: each level adds index rows for all its descendants. */
export const MAX_DEPTH = 16;

export const isUid = (text: string): boolean => text.length <= 40 + MAX_DEPTH * 17 && UID.test(text);

/** A new random uid under `parent`: 8 bytes are added to the uid of the parent. Without a parent it has 20 bytes. */
export const newUid = (parent: string): string => (parent === ROOT ? randomHex(20) : `${parent}/${randomHex(8)}`);

/** Random bytes that were read in advance: each system call takes some microseconds, however few bytes it reads. */
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

/** The uids from the root to the parent of `uid`; empty for a root. */
export function ancestorsOf(uid: string): string[] {
  const ancestors: string[] = [];
  for (let cut = uid.indexOf('/'); cut > 0; cut = uid.indexOf('/', cut + 1)) ancestors.push(uid.slice(0, cut));
  return ancestors;
}

/** Whether `uid` is `scope` or a descendant of it. */
export const isWithin = (uid: string, scope: string): boolean =>
  uid.startsWith(scope) && (uid.length === scope.length || uid[scope.length] === '/');

/** Whether `uid` is within one of `scopes`, found by binary search. `scopes` must come from `outermost`. */
export function isWithinAny(uid: string, scopes: readonly string[]): boolean {
  let [low, high] = [0, scopes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scopes[middle] as string) <= uid) low = middle + 1;
    else high = middle;
  }
  // The last scope that does not sort after the uid. Only it can be an ancestor, because scopes do not contain each
  // other.
  const nearest = scopes[low - 1];
  return nearest !== undefined && isWithin(uid, nearest);
}

/** The uids that have no ancestor among the others, sorted and without duplicates. */
export function outermost(uids: readonly string[]): string[] {
  const result: string[] = [];
  // In sorted order the descendants of a uid follow it directly, because `/` sorts before all other characters of a
  // uid.
  for (const uid of uids.toSorted()) {
    const last = result.at(-1);
    if (last === undefined || !isWithin(uid, last)) result.push(uid);
  }
  return result;
}

/** The exclusive bounds of the descendants of `uid`: `0` follows `/` in ASCII. */
export const descendantRange = (uid: string): [low: string, high: string] => [uid, `${uid}0`];
