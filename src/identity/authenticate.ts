import type { Access } from '../access/access.ts';
import { createCaller } from '../access/caller.ts';
import { narrow } from '../access/narrow.ts';
import type { Clock } from '../base/clock.ts';
import { unauthenticated } from '../base/errors.ts';
import type { Caller } from '../resource/context.ts';
import type { Reader } from '../store/store.ts';
import { isMeantFor } from './audience.ts';
import type { AuthenticateUpstream } from './exchange.ts';
import { grantsThrough } from './provider-grants.ts';
import { requireStanding } from './standing.ts';
import { bearerToken, type OwnToken, type Tokens } from './tokens.ts';

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
): (authorization: string | undefined) => Promise<Caller> {
  const { db, clock, tokens, upstream, access, publicUrl, seen } = options;

  async function ownCaller(own: OwnToken): Promise<Caller> {
    if (!isMeantFor(publicUrl(), own.audiences))
      throw unauthenticated('invalid "aud" in the token: it is for somebody else');
    await requireStanding(db, own, clock());
    const { identity, act, provider } = own;
    const grants = [...(await access.grants(identity)), ...(await grantsThrough(db, provider))];
    return createCaller(identity, { subject: identity, ...(act && { act: { ...act } }) }, narrow(grants, own));
  }

  async function foreignCaller(token: string): Promise<Caller> {
    const { identity, issuer: iss, subject: sub, audiences, provider } = await upstream(token, {});
    const grants = [...(await access.grants(identity)), ...(await grantsThrough(db, provider))];
    return createCaller(identity, { subject: identity, act: { iss, sub, aud: audiences.join(',') } }, grants);
  }

  return async (authorization) => {
    const token = bearerToken(authorization);
    if (token === '') throw unauthenticated('send a token as Authorization: Bearer <token>');
    const own = await tokens.verify(token);
    const caller = own ? await ownCaller(own) : await foreignCaller(token);
    seen(caller.uid);
    return caller;
  };
}
