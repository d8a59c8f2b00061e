import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { denied, invalid, unauthenticated } from '../../base/errors.ts';
import { isUid, parentOf } from '../../base/uid.ts';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  type ExchangeRefreshTokenRequest,
  type ExchangeRequest,
  RawTokenSchema,
  SecurityTokenService,
  TokenPairSchema,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import type { Operation, Operations, ReadContext } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { type Provider, proofOf, requireStanding } from '../login/login-validity.ts';
import { bearerToken, type Email, type MintedToken, type OwnToken, type Tokens } from '../tokens/access-tokens.ts';
import { isMeantFor } from '../tokens/audience.ts';
import { LOGIN_LIFETIME_MS, TOKEN_LIFETIME_MS } from '../tokens/lifetimes.ts';
import type { Login, RefreshTokens } from '../tokens/refresh-tokens.ts';
import { narrowed, readWish } from './token-request.ts';

/** What a third party's token says, once it is verified. */
export interface UpstreamClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  readonly email?: Email | undefined;
}

/** A third party's token and the identity that it matches. */
export interface Upstream extends UpstreamClaims {
  readonly identity: string;
  readonly provider?: Provider | undefined;
}

/**
 * Finds out whom a third party's token speaks for: the identity that is wanted, which exists, or else the oldest that
 * matches. Throws UNAUTHENTICATED for a token that is not good, and PERMISSION_DENIED naming the claim, such as
 * `invalid "sub"`, for one that does not match the wanted identity.
 */
export type AuthenticateUpstream = (
  token: string,
  wanted: { readonly identity?: string | undefined; readonly identityProvider?: string | undefined },
) => Promise<Upstream>;

export interface ExchangeOptions {
  readonly tokens: Tokens;
  readonly refreshTokens: RefreshTokens;
  readonly authenticateUpstream: AuthenticateUpstream;
  readonly publicUrl: () => string;
}

/** The token exchange. Reads to the pipeline: verification may ask another server, and no transaction waits for that. */
export function exchangeOperations(options: ExchangeOptions): Operations {
  const { tokens, refreshTokens, authenticateUpstream, publicUrl } = options;

  const exchange: Operation = {
    mode: 'read',
    async run(ctx, message) {
      const request = message as ExchangeRequest;
      const token = requireToken(ctx, 'the token to exchange');
      const wish = readWish(request);
      refuseNonUids(request);
      const own = await tokens.verify(token);
      const login = own ? await rescope(ctx, own, request, publicUrl()) : await logIn(ctx, token, request);
      const granted: Login = { ...login, ...narrowed(login, wish) };
      const minted = await tokens.mint({ ...granted, audiences: wish.audiences });
      const { token: refreshToken } = await refreshTokens.issue(granted);
      return create(RawTokenSchema, { ...rawToken(minted), refreshToken });
    },
  };

  async function logIn({ db, now }: ReadContext, token: string, request: ExchangeRequest): Promise<Login> {
    if (request.identity !== '') await refuseImpossible(db, request.identity);
    const upstream = await authenticateUpstream(token, {
      identity: request.identity || undefined,
      identityProvider: request.identityProvider || undefined,
    });
    const stored = await find(db, identities, upstream.identity);
    if (!stored) throw noMatch('iss');
    return {
      identity: upstream.identity,
      authenticated: now,
      proof: proofOf(stored.message as Identity),
      act: { iss: upstream.issuer, sub: upstream.subject, aud: upstream.audiences.join(',') },
      email: upstream.email,
      provider: upstream.provider,
      // Whoever sets up a provider chooses whose tokens it takes, so those are worth nothing outside of its group.
      scopes: upstream.provider && [parentOf(upstream.provider.uid)],
    };
  }

  const exchangeRefreshToken: Operation = {
    mode: 'read',
    async run(ctx, message) {
      const presented = requireToken(ctx, 'the refresh token');
      const wish = readWish(message as ExchangeRefreshTokenRequest);
      const login = await refreshTokens.find(presented);
      await requireStanding(ctx.db, login, ctx.now);
      // Minted before the old one is used up: a failure up to here costs the client nothing.
      const minted = await tokens.mint({ ...login, ...narrowed(login, wish), audiences: wish.audiences });
      const renewed = await refreshTokens.renew(presented);
      return create(TokenPairSchema, { token: rawToken(minted), refreshToken: rawToken(renewed) });
    },
  };

  return {
    [`${SecurityTokenService.typeName}/${SecurityTokenService.method.exchange.name}`]: exchange,
    [`${SecurityTokenService.typeName}/${SecurityTokenService.method.exchangeRefreshToken.name}`]: exchangeRefreshToken,
  };
}

const rawToken = ({ token, expires }: MintedToken) => ({ token, expiry: timestampFromMs(expires) });

function requireToken({ authorization }: ReadContext, what: string): string {
  const token = bearerToken(authorization);
  if (token === '') throw unauthenticated(`send ${what} as Authorization: Bearer <token>`);
  return token;
}

function refuseNonUids({ identity, identityProvider }: ExchangeRequest): void {
  for (const [field, uid] of Object.entries({ identity, identity_provider: identityProvider })) {
    if (uid !== '' && !isUid(uid)) throw invalid(field, 'must be a uid: 40 hex digits, then /-separated parts of 16');
  }
}

/** An identity that does not exist is refused as one of another issuer is, so that nobody finds out which exist. */
async function refuseImpossible(db: Reader, uid: string): Promise<void> {
  const identity = (await find(db, identities, uid))?.message as Identity | undefined;
  if (!identity) throw noMatch('iss');
  const kind = UNSUPPORTED[identity.relationship.case ?? ''];
  if (kind) throw denied(`${kind} cannot log in on this server yet`);
}

const UNSUPPORTED: Readonly<Record<string, string>> = {
  awsIdentity: 'AWS identities',
  servicePrincipal: 'service principals',
};

/** Only the claim is named: what it should have been is nobody's business. */
export const noMatch = (claim: string) => denied(`invalid "${claim}" in the token`);

/** One of our own tokens stands for the login it came from, and for no more than it is itself good for. */
async function rescope(
  { db, now }: ReadContext,
  own: OwnToken,
  request: ExchangeRequest,
  publicUrl: string,
): Promise<Login> {
  // Whoever was handed a token that is meant for them must not turn it into one for us.
  if (!isMeantFor(publicUrl, own.audiences))
    throw unauthenticated('invalid "aud" in the token: it is for somebody else');
  // Five minutes at the registry must not become an hour, and a refresh token, here.
  if (own.expires - own.issuedAt < TOKEN_LIFETIME_MS) {
    throw unauthenticated('a token for one short task cannot be exchanged; use the one that bought it');
  }
  if (request.identityProvider !== '') throw noMatch('iss');
  if (request.identity !== '' && request.identity !== own.identity) throw noMatch('sub');
  if (own.authenticated + LOGIN_LIFETIME_MS <= now) {
    throw unauthenticated('the login that this token comes from was too long ago; log in again');
  }
  await requireStanding(db, own, now);
  const { audiences: _audiences, issuedAt: _issuedAt, expires: _expires, ...login } = own;
  return login;
}
