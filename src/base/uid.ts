import { randomBytes } from 'node:crypto';

/** The parent of everything that has no parent. */
export const ROOT = '/';

const UID = /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/;

/** Deeper uids than this are refused: each level costs index rows for everything below it. */
export const MAX_DEPTH = 16;

export const isUid = (text: string): boolean => text.length <= 40 + MAX_DEPTH * 17 && UID.test(text);

/** A fresh uid below `parent`: 8 random bytes as a suffix, or 20 for a root. */
export const newUid = (parent: string): string =>
  parent === ROOT ? randomBytes(20).toString('hex') : `${parent}/${randomBytes(8).toString('hex')}`;

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

/** Those of `uids` that lie in no other of them, each once. */
export const outermost = (uids: readonly string[]): string[] =>
  [...new Set(uids)].filter((uid) => !uids.some((outer) => outer !== uid && isWithin(uid, outer))).sort();

/** The bounds, both excluded, of every uid below `uid`: `0` follows `/` in ASCII. */
export const rangeBelow = (uid: string): [low: string, high: string] => [uid, `${uid}0`];
