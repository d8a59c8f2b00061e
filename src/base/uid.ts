import { randomFillSync } from 'node:crypto';
import { invalid } from './errors.ts';

/** Stands for the parent of a resource that has no parent. */
export const ROOT = '/';

const UID = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/;

/** The most levels of a uid: each level adds index rows for all its descendants. */
export const MAX_DEPTH = 16;

declare const brand: unique symbol;

/**
 * The identifier of a resource: the uid of its parent, a slash, and 16 hex digits; 40 hex digits for a resource without
 * a parent. So a uid names all ancestors of a resource. Text from outside becomes a Uid by `parseUid`, or by `isUid`
 * where the code accepts other texts too.
 */
export type Uid = string & { readonly [brand]: 'uid' };

/** The uid of a parent, or ROOT. */
export type ParentUid = Uid | typeof ROOT;

export const isUid = (text: string): text is Uid => text.length <= 40 + MAX_DEPTH * 17 && UID.test(text);

/** What is wrong with a field that must be a uid and is not. For places that report several violations at once. */
export const NOT_A_UID = 'must be a uid: 40 hex digits, then /-separated parts of 16';

/** Returns `text` as a Uid. Throws INVALID_ARGUMENT for `field` when it is none. */
export function parseUid(field: string, text: string): Uid {
  if (!isUid(text)) throw invalid(field, NOT_A_UID);
  return text;
}

/** A new random uid under `parent`: 8 bytes are added to the uid of the parent. Without a parent it has 20 bytes. */
export const newUid = (parent: ParentUid): Uid =>
  (parent === ROOT ? randomHex(20) : `${parent}/${randomHex(8)}`) as Uid;

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

/** Returns plain text for plain text, such as the uid in a message. */
export function parentOf(uid: Uid): ParentUid;
export function parentOf(uid: string): string;
export function parentOf(uid: string): string {
  const cut = uid.lastIndexOf('/');
  return cut < 0 ? ROOT : uid.slice(0, cut);
}

/** Returns plain text for plain text, as `parentOf` does. */
export function rootOf(uid: Uid): Uid;
export function rootOf(uid: string): string;
export function rootOf(uid: string): string {
  return uid.slice(0, 40);
}

/** The last path segment. */
export const suffixOf = (uid: string): string => uid.slice(uid.lastIndexOf('/') + 1);

export const depthOf = (uid: string): number => (uid.length - 40) / 17;

/** The uids from the root to the parent of `uid`; empty for a root. */
export function ancestorsOf(uid: Uid): Uid[] {
  const ancestors: Uid[] = [];
  for (let cut = uid.indexOf('/'); cut > 0; cut = uid.indexOf('/', cut + 1)) ancestors.push(uid.slice(0, cut) as Uid);
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
export function outermost(uids: readonly Uid[]): Uid[] {
  const result: Uid[] = [];
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
