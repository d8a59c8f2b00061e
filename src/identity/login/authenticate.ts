import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Access } from '../../access/access.ts';
import { createCaller } from '../../access/caller.ts';
import { narrowGrants } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { unauthenticated } from '../../base/errors.ts';
import { createLru } from '../../base/lru.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Caller } from '../../resource/caller.ts';
import type { Reader } from '../../store/store.ts';
import { grantsThrough } from '../federation/provider-grants.ts';
import type { AuthenticateUpstream } from '../sts/exchange.ts';
import { bearerToken, type OwnToken, type Tokens } from '../tokens/access-tokens.ts';
import { isMeantFor } from '../tokens/audience.ts';
import { requireStanding } from './login-validity.ts';

export interface AuthenticatorOptions {
  readonly db: Reader;
  readonly clock: Clock;
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly upstream: AuthenticateUpstream;
  readonly access: Access;
  /** Where clients reach this server: a token of ours must be meant for it. */
  readonly publicUrl: () => string;
  /** Told about every identity that comes. */
  readonly seen: (identity: string) => void;
}

/** Answers who sent an `authorization` value: one of our own tokens, or a third party's that matches an identity. */
export function createAuthenticator(
  options: AuthenticatorOptions,
): (authorization: string | undefined) => MaybePromise<Caller> {
  const { db, clock, tokens, upstream, access, publicUrl, seen } = options;

  // By digest, because a token in memory is a secret too.
  const known = createLru<string, Known>(MAX_KNOWN);

  async function ownCaller(own: OwnToken): Promise<Known['worth']> {
    if (!isMeantFor(publicUrl(), own.audiences))
      throw unauthenticated('invalid "aud" in the token: it is for somebody else');
    const { relationship } = await requireStanding(db, own, clock());
    const { identity, act, provider } = own;
    const grants = [...(await access.grants(identity)), ...(await grantsThrough(db, provider))];
    const caller = createCaller(
      identity,
      { subject: identity, ...(act && { act: { ...act } }) },
      narrowGrants(grants, own),
    );
    const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
    return { caller, until: Math.min(own.expires, expiry ? timestampMs(expiry) : Infinity) };
  }

  async function foreignCaller(token: string): Promise<Caller> {
    const { identity, issuer: iss, subject: sub, audiences, provider } = await upstream(token, {});
    const grants = [...(await access.grants(identity)), ...(await grantsThrough(db, provider))];
    return createCaller(identity, { subject: identity, act: { iss, sub, aud: audiences.join(',') } }, grants);
  }

  /** What a token of ours was worth the last time, unless anything about access has changed or its time is over. */
  function remembered(digest: string, version: string | undefined): Caller | undefined {
    const found = known.get(digest);
    return found && found.version === version && clock() < found.worth.until ? found.worth.caller : undefined;
  }

  async function prove(token: string, digest: string, version: string | undefined): Promise<Caller> {
    const own = await tokens.verify(token);
    if (own === undefined) return foreignCaller(token);
    const worth = await ownCaller(own);
    known.set(digest, { worth, version });
    return worth.caller;
  }

  function met(caller: Caller): Caller {
    seen(caller.uid);
    return caller;
  }

  function recognize(token: string, digest: string, version: string | undefined): MaybePromise<Caller> {
    const caller = remembered(digest, version);
    return caller ? met(caller) : prove(token, digest, version).then(met);
  }

  // Most callers are known, and cost no promise.
  return (authorization) => {
    const token = bearerToken(authorization);
    if (token === '') throw unauthenticated('send a token as Authorization: Bearer <token>');
    const digest = hash('sha256', token, 'base64');
    // Read before anything else about access, so that it can only be older than what is remembered under it.
    const version = access.version();
    return version instanceof Promise
      ? version.then((newest) => recognize(token, digest, newest))
      : recognize(token, digest, version);
  };
}

const MAX_KNOWN = 10_000;

interface Known {
  readonly worth: { readonly caller: Caller; readonly until: number };
  /** The access version that this is known under. Whatever else a token hangs on changes it: see requireStanding. */
  readonly version: string | undefined;
}
