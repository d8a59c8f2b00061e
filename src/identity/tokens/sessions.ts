import { descendantRange } from '../../base/uid.ts';
import { bumpAccessVersion } from '../../resource/access-version.ts';
import { pointRead } from '../../store/point-read.ts';
import type { Reader, Row, Transaction } from '../../store/store.ts';

// A session is a login that has a refresh token: a row of the table refresh_family. All access tokens of the login name
// it, and are valid for as long as the row exists.

/** What a user can recognise a session by. */
export interface SessionClient {
  readonly address: string;
  readonly userAgent: string;
}

export interface SessionRow extends Row {
  readonly uid: string;
  readonly identity: string;
  readonly created: number;
  /** When its tokens were last renewed, in milliseconds. */
  readonly used: number;
  readonly expires: number;
  readonly address: string;
  readonly user_agent: string;
  /** The login as JSON (refresh-tokens.ts). */
  readonly session: string;
}

const FIND_EXPIRY = pointRead({ columns: ['expires'], from: 'refresh_family', key: ['uid'] });
const LIST = `SELECT uid, identity, created, used, expires, address, user_agent, session FROM refresh_family
  WHERE uid > $1 AND uid < $2 AND expires > $3 ORDER BY uid LIMIT $4`;
const END = 'DELETE FROM refresh_family WHERE uid = $1';
const END_ALL = 'DELETE FROM refresh_family WHERE uid > $1 AND uid < $2';

const ID_DIGITS = 16;

/** The uid of the session of a refresh token family. */
export const sessionUid = (identity: string, family: string): string => `${identity}/${family.slice(0, ID_DIGITS)}`;

/** Whether a session has neither ended nor expired. */
export async function isSessionOpen(db: Reader, uid: string, now: number): Promise<boolean> {
  const row = await db.get<{ expires: number }>(FIND_EXPIRY, uid);
  return row !== undefined && row.expires > now;
}

/** The sessions of an identity that have neither ended nor expired, ordered by uid. `after` is the last of a page. */
export async function listSessions(
  db: Reader,
  identity: string,
  now: number,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<SessionRow[]> {
  const [low, high] = descendantRange(identity);
  return db.all<SessionRow>(LIST, after ?? low, high, now, limit);
}

/** Ends a session: its tokens are refused from the next request on. Returns whether there was one. */
export async function endSession(tx: Transaction, uid: string): Promise<boolean> {
  const hasEnded = (await tx.run(END, uid)) > 0;
  // Drops the cached callers of its access tokens.
  if (hasEnded) bumpAccessVersion(tx);
  return hasEnded;
}

/** Ends all sessions of an identity and returns how many there were. */
export async function endAllSessions(tx: Transaction, identity: string): Promise<number> {
  const ended = await tx.run(END_ALL, ...descendantRange(identity));
  if (ended > 0) bumpAccessVersion(tx);
  return ended;
}
