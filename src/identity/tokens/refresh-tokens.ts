import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenScope } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { type ApiError, unauthenticated } from '../../base/errors.ts';
import { decodeCapabilitySet, encodeCapabilitySet } from '../../contract/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import type { LoginRecord } from '../login/login-validity.ts';
import type { Actor, Email, IssuedToken } from './access-tokens.ts';
import { ACCESS_TOKEN_LIFETIME_MS, LOGIN_LIFETIME_MS } from './lifetimes.ts';
import { endSession, type SessionClient, sessionUid } from './sessions.ts';

/** A login. Its token scope limits every access token that is issued from it. */
export interface Login extends TokenScope, LoginRecord {
  readonly act?: Actor | undefined;
  readonly email?: Email | undefined;
}

export interface RefreshTokens {
  /** Begins a session: issues the first refresh token of a login. `client` is what the user can recognise it by. */
  issue(login: Login, client?: SessionClient): Promise<IssuedToken & { readonly session: string }>;
  /** Returns the login of a refresh token, which stays valid. Throws UNAUTHENTICATED for an invalid refresh token. */
  findLogin(refreshToken: string): Promise<Login>;
  /** Invalidates a refresh token and returns the next one of the same login. */
  rotate(refreshToken: string): Promise<IssuedToken>;
}

interface FamilyRow extends Row {
  readonly uid: string;
  readonly secret_hash: string;
  readonly identity: string;
  readonly session: string;
  readonly expires: number;
}

const INSERT = `INSERT INTO refresh_family
  (id, secret_hash, identity, session, expires, uid, created, used, address, user_agent)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)`;
const FIND = 'SELECT uid, secret_hash, identity, session, expires FROM refresh_family WHERE id = $1';
const ROTATE = 'UPDATE refresh_family SET secret_hash = $2, used = $3 WHERE id = $1';
const DELETE_EXPIRED = `DELETE FROM refresh_family WHERE id IN
  (SELECT id FROM refresh_family WHERE expires <= $1 ORDER BY expires LIMIT 500)`;
/**
 * Ends the refresh tokens of the oldest logins of an identity, except for the new one ($2) and some others ($3). Several
 * servers can issue at the same time, so there may be more than one. Their access tokens stay valid until they have
 * expired ($4): a build system can have more jobs in an hour than refresh tokens, and does not use these.
 */
const END_OLDEST = `UPDATE refresh_family SET secret_hash = '', expires = $4 WHERE id IN
  (SELECT id FROM refresh_family WHERE identity = $1 AND id <> $2 AND expires > $4
    ORDER BY expires DESC, id LIMIT 500 OFFSET $3)`;
const DELETE_EXPIRED_EVERY_MS = 60_000;
/** The hash of a session whose refresh token was ended, and whose access tokens are still valid. */
const ENDED = '';
/** How much the clocks of two servers may differ. */
const CLOCK_TOLERANCE_MS = 60_000;

/**
 * A family is all the refresh tokens of one login. Only the newest one is valid. When an older one is presented, the
 * token may have been stolen, so the family is revoked (RFC 9700, section 4.14.2). Only hashes are stored.
 */
export function createRefreshTokens({ store, clock }: { store: Store; clock: Clock }): RefreshTokens {
  let lastCleanup = Number.NEGATIVE_INFINITY;

  /** Called by every login, so that no timer is needed. */
  async function deleteExpired(now: number): Promise<void> {
    if (now - lastCleanup < DELETE_EXPIRED_EVERY_MS) return;
    lastCleanup = now;
    await store.write((tx) => tx.run(DELETE_EXPIRED, now));
  }

  return {
    async issue(login, client = { address: '', userAgent: '' }) {
      const now = clock();
      await deleteExpired(now);
      const expires = login.authenticatedAt + LOGIN_LIFETIME_MS;
      const first = { id: randomBytes(16).toString('hex'), secret: newSecret() };
      const session = sessionUid(login.identity, first.id);
      const { address, userAgent } = client;
      const row = [first.id, hashOf(first.secret), login.identity, encodeLogin(login), expires] as const;
      await store.write(async (tx) => {
        await tx.run(INSERT, ...row, session, now, address, userAgent.slice(0, MAX_USER_AGENT));
        const limit = tx.quotas?.limits.refreshTokens ?? Infinity;
        if (limit === Infinity) return;
        const accessTokensExpire = now + ACCESS_TOKEN_LIFETIME_MS + CLOCK_TOLERANCE_MS;
        await tx.run(END_OLDEST, login.identity, first.id, limit - 1, accessTokensExpire);
      });
      return { token: encodeToken(first, expires), expires, session };
    },

    async findLogin(refreshToken) {
      const presented = decodeToken(refreshToken);
      const row = await store.reader.get<FamilyRow>(FIND, presented.id);
      if (row === undefined || row.secret_hash === ENDED || row.expires <= clock()) throw expiredOrRevoked();
      if (!isNewest(presented, row)) {
        await store.write((tx) => endSession(tx, row.uid));
        throw reused();
      }
      return decodeLogin(row);
    },

    async rotate(refreshToken) {
      const presented = decodeToken(refreshToken);
      const secret = newSecret();
      // An error inside the transaction would roll back the revocation, so it is thrown after the commit.
      const result = await store.write(async (tx) => {
        const row = await tx.forUpdate.get<FamilyRow>(FIND, presented.id);
        if (row === undefined || row.secret_hash === ENDED || row.expires <= clock()) return expiredOrRevoked();
        if (!isNewest(presented, row)) {
          await endSession(tx, row.uid);
          return reused();
        }
        await tx.run(ROTATE, presented.id, hashOf(secret), clock());
        return { token: encodeToken({ id: presented.id, secret }, row.expires), expires: row.expires };
      });
      if (result instanceof Error) throw result;
      return result;
    },
  };
}

const expiredOrRevoked = (): ApiError => unauthenticated('the refresh token has expired or was revoked; log in again');
const reused = (): ApiError =>
  unauthenticated('the refresh token was used before. It may have been stolen, so its login was ended; log in again');

/** The content of a refresh token: the id of its family, and its secret. */
interface RefreshTokenContent {
  readonly id: string;
  readonly secret: string;
}

const newSecret = (): string => randomBytes(32).toString('base64url');

/** A hash without salt or key stretching is enough: 256 random bits cannot be guessed. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const isNewest = ({ secret }: RefreshTokenContent, { secret_hash }: FamilyRow): boolean =>
  timingSafeEqual(Buffer.from(hashOf(secret)), Buffer.from(secret_hash));

const MAX_LENGTH = 512;
const MAX_USER_AGENT = 256;

/** Existing clients read an integer `exp` from padded base64 of JSON. Without one they consider the token expired. */
const encodeToken = ({ id, secret }: RefreshTokenContent, expires: number): string =>
  Buffer.from(JSON.stringify({ exp: Math.floor(expires / 1000), id, secret })).toString('base64');

function decodeToken(refreshToken: string): RefreshTokenContent {
  const { id, secret } = parseBase64Json(refreshToken) ?? {};
  if (typeof id !== 'string' || typeof secret !== 'string' || !/^[0-9a-f]{32}$/.test(id)) {
    throw unauthenticated('this is not a refresh token; send a refresh token as Authorization: Bearer <refresh token>');
  }
  return { id, secret };
}

function parseBase64Json(text: string): Record<string, unknown> | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** A login as the column `session` stores it. The identity has a column of its own. */
interface StoredLogin extends Pick<Login, 'scopes' | 'act' | 'email' | 'provider'> {
  readonly authenticated: number;
  readonly proof: string;
  readonly cap?: string;
}

function encodeLogin(login: Login): string {
  const { identity: _column, session: _uid, authenticatedAt, credentialFingerprint, capabilities, ...rest } = login;
  const stored: StoredLogin = {
    ...rest,
    authenticated: authenticatedAt,
    proof: credentialFingerprint,
    ...(capabilities !== undefined && { cap: encodeCapabilitySet(capabilities) }),
  };
  return JSON.stringify(stored);
}

/** The login of a row of the table refresh_family. */
export function decodeLogin({ uid, identity, session }: Pick<FamilyRow, 'uid' | 'identity' | 'session'>): Login {
  const { authenticated, proof, cap, ...rest } = JSON.parse(session) as StoredLogin;
  const capabilities = cap === undefined ? undefined : decodeCapabilitySet(cap);
  if (cap !== undefined && capabilities === undefined) throw new Error('a stored login is damaged');
  const login = { identity, session: uid, authenticatedAt: authenticated, credentialFingerprint: proof };
  return { ...rest, ...login, capabilities };
}
