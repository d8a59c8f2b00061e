import { createHmac, createSecretKey, hash, timingSafeEqual } from 'node:crypto';
import { invalid } from '../../base/errors.ts';

/** The position of the last row of a page: its sort keys and its uid. */
export interface Cursor {
  readonly keys: readonly string[];
  readonly uid: string;
  /** A total that took counting. The token carries it, so that the next page need not count again. */
  readonly countedTotal?: CountedTotal | undefined;
  /** How many results the pages so far have skipped by `skip`. */
  readonly skipped?: number | undefined;
}

export interface CountedTotal {
  readonly total: number;
  /** The fingerprint of the counted collections. If the reach of the caller has changed, the total is not used. */
  readonly collections: string;
}

export interface PageTokens {
  issue(cursor: Cursor, query: string, now: number): string;
  /** Returns undefined if the token has expired: as the API specifies, the list then starts over. */
  read(token: string, query: string, now: number): Cursor | undefined;
}

const LIFETIME_MS = 3 * 24 * 60 * 60 * 1000;
const MAC_BYTES = 16;
const MAX_LENGTH = 8192;

/**
 * Issues and reads page tokens: a cursor with a MAC, base64url of `mac || json`. A token is valid for the same `query`
 * only: filters, order and caller. All servers of a database share `key`.
 */
export function createPageTokens(key: Uint8Array): PageTokens {
  // Created once: createHmac would create a key from the bytes for each token, which takes longer than the MAC itself.
  const secret = createSecretKey(key);
  const macOf = (payload: Uint8Array) => createHmac('sha256', secret).update(payload).digest().subarray(0, MAC_BYTES);

  return {
    issue({ keys, uid, countedTotal, skipped = 0 }, query, now) {
      const counts: Counts = [countedTotal?.total ?? null, countedTotal?.collections ?? null];
      if (skipped > 0) counts.push(skipped);
      const rest = countedTotal || skipped > 0 ? [counts] : [];
      const payload = Buffer.from(JSON.stringify([now, fingerprint(query), uid, ...keys, ...rest]));
      return Buffer.concat([macOf(payload), payload]).toString('base64url');
    },

    read(token, query, now) {
      const bytes = Buffer.from(token.slice(0, MAX_LENGTH), 'base64url');
      const payload = bytes.subarray(MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(payload))) {
        throw invalid('page_token', 'was not issued by this server; start again without it');
      }
      const [issued, queryFingerprint, uid, ...rest] = JSON.parse(payload.toString()) as Payload;
      if (now - issued > LIFETIME_MS) return undefined;
      if (queryFingerprint !== fingerprint(query)) {
        throw invalid(
          'page_token',
          'belongs to another query; keep filters, order_by and caller the same, or start again',
        );
      }
      const [total, collections, skipped] = rest.find((part) => typeof part !== 'string') ?? [];
      return {
        keys: rest.filter((part) => typeof part === 'string'),
        uid,
        ...(typeof total === 'number' && collections && { countedTotal: { total, collections } }),
        ...(skipped !== undefined && { skipped }),
      };
    },
  };
}

/**
 * Returns how many results to skip from a cursor on, and how many are skipped since the first page. `skip` counts from
 * the start of the list: a request that repeats it with each page token skips once.
 */
export function skipFrom(cursor: Pick<Cursor, 'skipped'> | undefined, requested: number) {
  if (requested < 0) throw invalid('skip', 'must not be negative');
  const before = cursor?.skipped ?? 0;
  const skipped = Math.max(before, requested);
  return { skip: skipped - before, skipped };
}

/** The time of issue, the fingerprint of the query, the uid and the sort keys of the last row, and what was counted. */
type Payload = [number, string, string, ...(string | Counts)[]];

/** A counted total, or nulls, and the number of skipped results. The release before reads the first two. */
type Counts = [total: number | null, collections: string | null, skipped?: number];

export const fingerprint = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);
