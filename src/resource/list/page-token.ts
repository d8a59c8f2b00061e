import { createHmac, createSecretKey, hash, timingSafeEqual } from 'node:crypto';
import { invalid } from '../../base/errors.ts';

/** The last row of a page: its sort keys, then its uid. */
export interface Cursor {
  readonly keys: readonly string[];
  readonly uid: string;
  /** What had to be counted for the page travels with its token, or a walk would count it again on every page. */
  readonly countedTotal?: CountedTotal | undefined;
}

export interface CountedTotal {
  readonly total: number;
  /** The fingerprint of the places that it was counted in. For a caller who now reaches others it says nothing. */
  readonly collections: string;
}

export interface PageTokens {
  issue(cursor: Cursor, query: string, now: number): string;
  /** The cursor, or nothing when the token is too old: the query then starts over (spec section 4, rule 3). */
  read(token: string, query: string, now: number): Cursor | undefined;
}

const LIFETIME_MS = 3 * 24 * 60 * 60 * 1000;
const MAC_BYTES = 16;
const MAX_LENGTH = 8192;

/**
 * Opaque, authenticated cursors: base64url of `mac || json`. `query` is whatever the token must not outlive a
 * change of: filters, order and caller. `key` is shared by all servers of a database.
 */
export function createPageTokens(key: Uint8Array): PageTokens {
  // Made once: from bytes, each token would make a key of its own first, which takes longer than the rest.
  const secret = createSecretKey(key);
  const macOf = (payload: Uint8Array) => createHmac('sha256', secret).update(payload).digest().subarray(0, MAC_BYTES);

  return {
    issue({ keys, uid, countedTotal: tally }, query, now) {
      const counted = tally ? [[tally.total, tally.collections]] : [];
      const payload = Buffer.from(JSON.stringify([now, fingerprint(query), uid, ...keys, ...counted]));
      return Buffer.concat([macOf(payload), payload]).toString('base64url');
    },

    read(token, query, now) {
      const bytes = Buffer.from(token.slice(0, MAX_LENGTH), 'base64url');
      const payload = bytes.subarray(MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(payload))) {
        throw invalid('page_token', 'is not a token this server issued; start again without it');
      }
      const [issued, print, uid, ...rest] = JSON.parse(payload.toString()) as Payload;
      if (now - issued > LIFETIME_MS) return undefined;
      if (print !== fingerprint(query)) {
        throw invalid(
          'page_token',
          'belongs to another query; keep filters, order_by and caller the same, or start again',
        );
      }
      const [total, places] = rest.find((part) => typeof part !== 'string') ?? [];
      const keys = rest.filter((part) => typeof part === 'string');
      return total === undefined || places === undefined
        ? { keys, uid }
        : { keys, uid, countedTotal: { total, collections: places } };
    },
  };
}

/** When it was issued, the fingerprint of the query, the uid and the keys of the last row, and what was counted. */
type Payload = [number, string, string, ...(string | [total: number, places: string])[]];

export const fingerprint = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);
