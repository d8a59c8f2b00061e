import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenScope } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { type ApiError, unauthenticated } from '../../base/errors.ts';
import { decodeSet, encodeSet } from '../../contract/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import type { Standing } from '../login/login-validity.ts';
import type { Actor, Email } from './access-tokens.ts';
import { LOGIN_LIFETIME_MS } from './lifetimes.ts';

/** What a login was good for, so that no token which comes from it is ever good for more. */
export interface Login extends TokenScope, Standing {
  readonly act?: Actor | undefined;
  readonly email?: Email | undefined;
}

export interface RefreshToken {
  readonly token: string;
  readonly expires: number;
}

export interface RefreshTokens {
  /** The first refresh token of a login. */
  issue(login: Login): Promise<RefreshToken>;
  /** The login that a refresh token stands for, which stays as good as it was. Throws UNAUTHENTICATED for any that is not good. */
  find(token: string): Promise<Login>;
  /** Uses a refresh token up and answers the next one of the same login. */
  renew(token: string): Promise<RefreshToken>;
}

interface FamilyRow extends Row {
  readonly secret_hash: string;
  readonly identity: string;
  readonly session: string;
  readonly expires: number;
}

const INSERT = 'INSERT INTO refresh_family (id, secret_hash, identity, session, expires) VALUES ($1, $2, $3, $4, $5)';
const FIND = 'SELECT secret_hash, identity, session, expires FROM refresh_family WHERE id = $1';
const RENEW = 'UPDATE refresh_family SET secret_hash = $2 WHERE id = $1';
const REVOKE = 'DELETE FROM refresh_family WHERE id = $1';
const PURGE = `DELETE FROM refresh_family WHERE id IN
  (SELECT id FROM refresh_family WHERE expires <= $1 ORDER BY expires LIMIT 500)`;
const PURGE_EVERY_MS = 60_000;

/**
 * A family is all the refresh tokens of one login. Only the newest is good: one that was used before is proof that
 * somebody else has it too, and ends the family (RFC 9700, section 4.14.2). Of each only a hash is kept.
 */
export function createRefreshTokens({ store, clock }: { store: Store; clock: Clock }): RefreshTokens {
  let purged = Number.NEGATIVE_INFINITY;

  /** What is over is removed now and then, by whoever comes next. */
  async function purge(now: number): Promise<void> {
    if (now - purged < PURGE_EVERY_MS) return;
    purged = now;
    await store.write((tx) => tx.run(PURGE, now));
  }

  return {
    async issue(login) {
      const now = clock();
      await purge(now);
      const expires = login.authenticated + LOGIN_LIFETIME_MS;
      const fresh = { id: randomBytes(16).toString('hex'), secret: newSecret() };
      const row = [fresh.id, hashOf(fresh.secret), login.identity, writeLogin(login), expires] as const;
      await store.write((tx) => tx.run(INSERT, ...row));
      return { token: write(fresh, expires), expires };
    },

    async find(token) {
      const presented = read(token);
      const row = await store.reader.get<FamilyRow>(FIND, presented.id);
      if (row === undefined || row.expires <= clock()) throw over();
      if (!isNewest(presented, row)) {
        await store.write((tx) => tx.run(REVOKE, presented.id));
        throw reused();
      }
      return readLogin(row);
    },

    async renew(token) {
      const presented = read(token);
      const secret = newSecret();
      // An error would undo the revocation, so it is thrown only after the commit.
      const outcome = await store.write(async (tx) => {
        const row = await tx.forUpdate.get<FamilyRow>(FIND, presented.id);
        if (row === undefined || row.expires <= clock()) return over();
        if (!isNewest(presented, row)) {
          await tx.run(REVOKE, presented.id);
          return reused();
        }
        await tx.run(RENEW, presented.id, hashOf(secret));
        return { token: write({ id: presented.id, secret }, row.expires), expires: row.expires };
      });
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
  };
}

const over = (): ApiError => unauthenticated('the refresh token has expired or was revoked; log in again');
const reused = (): ApiError =>
  unauthenticated('the refresh token was used before: in case it was stolen, its login has ended; log in again');

interface Presented {
  readonly id: string;
  readonly secret: string;
}

const newSecret = (): string => randomBytes(32).toString('base64url');

/** A plain hash is enough: there is no guessing 256 random bits. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const isNewest = ({ secret }: Presented, { secret_hash }: FamilyRow): boolean =>
  timingSafeEqual(Buffer.from(hashOf(secret)), Buffer.from(secret_hash));

const MAX_LENGTH = 512;

/** Existing clients look for an integer `exp` in padded base64 of JSON; without one they take the token for expired. */
const write = ({ id, secret }: Presented, expires: number): string =>
  Buffer.from(JSON.stringify({ exp: Math.floor(expires / 1000), id, secret })).toString('base64');

function read(token: string): Presented {
  const { id, secret } = parse(token) ?? {};
  if (typeof id !== 'string' || typeof secret !== 'string' || !/^[0-9a-f]{32}$/.test(id)) {
    throw unauthenticated('send a refresh token as Authorization: Bearer <refresh token>');
  }
  return { id, secret };
}

function parse(token: string): Record<string, unknown> | undefined {
  if (token.length > MAX_LENGTH) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64').toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const writeLogin = ({ identity: _column, capabilities, ...rest }: Login): string =>
  JSON.stringify({ ...rest, ...(capabilities !== undefined && { cap: encodeSet(capabilities) }) });

function readLogin({ identity, session }: FamilyRow): Login {
  const { cap, ...rest } = JSON.parse(session) as Omit<Login, 'identity' | 'capabilities'> & { cap?: string };
  const capabilities = cap === undefined ? undefined : decodeSet(cap);
  if (cap !== undefined && capabilities === undefined) throw new Error('a stored login is damaged');
  return { ...rest, identity, capabilities };
}
