import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { denied, unauthenticated } from '../../base/errors.ts';
import { parentOf, parseUid } from '../../base/uid.ts';
import {
  type ExchangeRequest,
  RawTokenSchema,
  SecurityTokenService,
  TokenPairSchema,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { type Operations, type ReadContext, readOperation } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { type AuthenticateFederated, claimMismatch } from '../federation/federated-login.ts';
import { loginUnsupportedMessage } from '../federation/verify-token.ts';
import { credentialFingerprintOf, requireValidLogin } from '../login/login-validity.ts';
import { type AccessTokens, bearerToken, type IssuedToken, type VerifiedAccessToken } from '../tokens/access-tokens.ts';
import { isRegistryToken, requireServerAudience } from '../tokens/audience.ts';
import { LOGIN_LIFETIME_MS } from '../tokens/lifetimes.ts';
import type { Login, RefreshTokens } from '../tokens/refresh-tokens.ts';
import { parseTokenRequest, restrictTokenScope, type TokenRequest } from './token-request.ts';

export interface ExchangeOptions {
  readonly accessTokens: AccessTokens;
  readonly refreshTokens: RefreshTokens;
  readonly authenticateFederated: AuthenticateFederated;
  readonly publicUrl: string;
}

/**
 * Implements the token exchange. Its methods are read operations, although they store refresh tokens: verification may
 * send a request to another server, which must not hold a transaction open.
 */
export function exchangeOperations(options: ExchangeOptions): Operations {
  const { accessTokens, refreshTokens, authenticateFederated, publicUrl } = options;

  async function logIn(
    { db, now }: ReadContext,
    token: string,
    request: ExchangeRequest,
    { scopes }: TokenRequest,
  ): Promise<Login> {
    if (request.identity !== '') await requireLoginSupported(db, request.identity);
    const federated = await authenticateFederated(token, {
      identity: request.identity || undefined,
      identityProvider: request.identityProvider || undefined,
      scopes,
    });
    const { identity, provider } = federated;
    const stored = await find(db, identities, identity);
    if (!stored) throw claimMismatch('iss');
    const login: Login = {
      identity,
      authenticatedAt: now,
      credentialFingerprint: credentialFingerprintOf(stored),
      act: { iss: federated.issuer, sub: federated.subject, aud: federated.audiences.join(',') },
      email: federated.email,
      provider,
      // The creator of a provider decides which tokens it accepts, so they must not give access outside of its group.
      scopes: provider && [parseUid('identity_provider', parentOf(provider.uid))],
    };
    await requireValidLogin(db, login, now, federated.issuedAt);
    return login;
  }

  return {
    ...readOperation(SecurityTokenService.method.exchange, async (ctx, request) => {
      const token = requireToken(ctx, 'the token to exchange');
      const requested = parseTokenRequest(request);
      requireUids(request);
      const accessToken = await accessTokens.verify(token);
      const login = accessToken
        ? await loginOf(ctx, accessToken, request, publicUrl)
        : await logIn(ctx, token, request, requested);
      const restricted: Login = { ...login, ...restrictTokenScope(login, requested) };
      const { audiences } = requested;
      if (accessToken) {
        // Stays in the session of the presented token and expires with it: only a refresh token renews a login.
        const issued = await accessTokens.issue({ ...restricted, audiences }, undefined, accessToken.expires);
        return create(RawTokenSchema, rawToken(issued));
      }
      const { token: refreshToken, session } = await refreshTokens.issue(restricted, ctx.peer);
      const issued = await accessTokens.issue({ ...restricted, session, audiences });
      return create(RawTokenSchema, { ...rawToken(issued), refreshToken });
    }),

    ...readOperation(SecurityTokenService.method.exchangeRefreshToken, async (ctx, request) => {
      const refreshToken = requireToken(ctx, 'the refresh token');
      const { audiences, ...requested } = parseTokenRequest(request);
      const login = await refreshTokens.findLogin(refreshToken);
      await requireValidLogin(ctx.db, login, ctx.now);
      // Issued before the refresh token is rotated, so that after a failure the client can retry with the same one.
      const issued = await accessTokens.issue({ ...login, ...restrictTokenScope(login, requested), audiences });
      const rotated = await refreshTokens.rotate(refreshToken);
      return create(TokenPairSchema, { token: rawToken(issued), refreshToken: rawToken(rotated) });
    }),
  };
}

const rawToken = ({ token, expires }: IssuedToken) => ({ token, expiry: timestampFromMs(expires) });

function requireToken({ authorization }: ReadContext, description: string): string {
  const token = bearerToken(authorization);
  if (token === '') throw unauthenticated(`send ${description} as Authorization: Bearer <token>`);
  return token;
}

function requireUids({ identity, identityProvider }: ExchangeRequest): void {
  for (const [field, uid] of Object.entries({ identity, identity_provider: identityProvider })) {
    if (uid !== '') parseUid(field, uid);
  }
}

async function requireLoginSupported(db: Reader, uid: string): Promise<void> {
  const stored = await find(db, identities, uid);
  if (!stored) throw claimMismatch('iss');
  const message = loginUnsupportedMessage(stored.message);
  if (message) throw denied(message);
}

/** Returns the login that an access token was issued from, restricted to the token scope of the access token. */
async function loginOf(
  { db, now }: ReadContext,
  accessToken: VerifiedAccessToken,
  request: ExchangeRequest,
  publicUrl: string,
): Promise<Login> {
  // The recipient of a token for another audience must not be able to exchange it for one for this server.
  requireServerAudience(publicUrl, accessToken.audiences);
  // A registry token is valid for the registry only and must not become an access token.
  if (isRegistryToken(accessToken.audiences)) {
    throw unauthenticated('a registry token cannot be exchanged; send the token that you got it with');
  }
  if (request.identityProvider !== '') throw claimMismatch('iss');
  if (request.identity !== '' && request.identity !== accessToken.identity) throw claimMismatch('sub');
  if (accessToken.authenticatedAt + LOGIN_LIFETIME_MS <= now) {
    throw unauthenticated('the login of this token was too long ago; log in again');
  }
  await requireValidLogin(db, accessToken, now);
  const { audiences: _audiences, issuedAt: _issuedAt, expires: _expires, ...login } = accessToken;
  return login;
}
