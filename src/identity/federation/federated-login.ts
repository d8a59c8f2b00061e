import { type ApiError, denied, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import type {
  IdentityProvider,
  IdentityProvider_OIDC,
} from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { candidateUids, identities } from '../../domains/iam/identities/identities.ts';
import { externalGroupRoleMappings } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import type { Stored } from '../../resource/definition.ts';
import { find, findAll, findChildren, findReferring } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import type { ProviderMembership } from '../login/login-validity.ts';
import type { Email } from '../tokens/access-tokens.ts';
import type { JwtClaims } from '../tokens/jwt.ts';
import type { TokenRejection } from '../tokens/token-signature.ts';
import { hasAudience, mismatchMessage } from './claim-match.ts';
import type { FederatedTokenVerifier, TokenVerification } from './verify-token.ts';

/** The claims of a verified federated token. */
export interface FederatedClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  /** In milliseconds. */
  readonly expires: number;
  readonly email?: Email | undefined;
}

/** A verified federated token and the identity that it authenticates. */
export interface FederatedLogin extends FederatedClaims {
  readonly identity: string;
  readonly provider?: ProviderMembership | undefined;
}

/**
 * Determines the identity that a federated token authenticates: the requested one, or else the oldest that matches.
 * Throws UNAUTHENTICATED for an invalid token. Throws PERMISSION_DENIED with the name of the claim, such as
 * `invalid "sub"`, for a token that does not match the requested identity.
 */
export type AuthenticateFederated = (
  token: string,
  requested: { readonly identity?: string | undefined; readonly identityProvider?: string | undefined },
) => Promise<FederatedLogin>;

/**
 * Verifies a federated token of a user who may have no identity yet: its signature, its validity period, and that its
 * audience is this server or the client id of an identity provider. The issuer must be that of an identity provider.
 */
export type VerifyUnregistered = (token: string) => Promise<FederatedClaims>;

export interface FederatedLoginOptions {
  readonly db: Reader;
  readonly verifier: FederatedTokenVerifier;
  /** The audience that a federated token must have, unless its identity or identity provider names another one. */
  readonly publicUrl: string;
}

export function createFederatedAuthenticator(options: FederatedLoginOptions): AuthenticateFederated {
  const { db, verifier, publicUrl } = options;

  async function verifyRequested(token: string, uid: string, audience: string): Promise<MatchedIdentity> {
    const stored = await find(db, identities, uid);
    if (!stored) throw claimMismatch('iss');
    const { claims, rejection } = await verifier.verify(token, stored.message, audience);
    if (rejection) throw toApiError(rejection);
    return { identity: uid, claims };
  }

  /** Prefers the oldest identity, so that a newer identity with the same claims cannot take over a login. */
  async function verifyOldest(token: string, audience: string): Promise<MatchedIdentity> {
    const { iss = '', sub = '' } = requireClaims(verifier.unverifiedClaims(token));
    const candidates = await findAll(db, identities, await candidateUids(db, iss, sub));
    candidates.sort((a, b) => a.created - b.created || (a.uid < b.uid ? -1 : 1));
    const rejections: TokenRejection[] = [];
    for (const { uid, message } of candidates) {
      const { claims, rejection } = await verifier.verify(token, message, audience);
      if (claims) return { identity: uid, claims };
      rejections.push(rejection);
    }
    const [mostHelpful] = rejections.sort((a, b) => helpfulness(b) - helpfulness(a));
    throw unauthenticated(
      mostHelpful?.reason ?? 'no identity matches the issuer and subject of this token; register or use another token',
    );
  }

  return async (token, requested) => {
    const provider =
      requested.identityProvider === undefined ? undefined : await requireProvider(token, requested.identityProvider);
    const audience = provider?.oidc.clientId ?? publicUrl;
    const { identity, claims } =
      requested.identity === undefined
        ? await verifyOldest(token, audience)
        : await verifyRequested(token, requested.identity, audience);
    if (!provider) return { identity, ...readClaims(claims) };
    const groups = await mappedGroups(db, provider, claims);
    return { identity, ...readClaims(claims), provider: { uid: provider.uid, groups } };
  };

  async function requireProvider(token: string, uid: string): Promise<OidcProvider> {
    const { iss = '' } = requireClaims(verifier.unverifiedClaims(token));
    const provider = oidcProviderOf(await find(db, identityProviders, uid));
    if (!provider || provider.oidc.issuer !== canonicalIssuer(iss)) throw claimMismatch('iss');
    return provider;
  }
}

export function createUnregisteredVerifier(options: FederatedLoginOptions): VerifyUnregistered {
  const { db, verifier, publicUrl } = options;
  return async (token) => {
    const { iss = '' } = requireClaims(verifier.unverifiedClaims(token));
    const providers = await findAll(
      db,
      identityProviders,
      await findReferring(db, identityProviders, 'issuer', canonicalIssuer(iss)),
    );
    // An unauthenticated client must not make this server contact any other issuer.
    if (providers.length === 0) {
      throw denied('no identity provider here has the issuer of this token; use a token of another issuer');
    }
    const claims = requireClaims(await verifier.verifyIssuedBy(token, iss));
    const clientIds = providers.flatMap((stored) => oidcProviderOf(stored)?.oidc.clientId ?? []);
    if (!hasAudience(claims.aud, [publicUrl, ...clientIds])) {
      throw unauthenticated(`invalid "aud" in the token; get a token for ${publicUrl}`);
    }
    return readClaims(claims);
  };
}

interface MatchedIdentity {
  readonly identity: string;
  readonly claims: JwtClaims;
}

interface OidcProvider {
  readonly uid: string;
  readonly oidc: IdentityProvider_OIDC;
}

function oidcProviderOf(stored: Stored<IdentityProvider> | undefined): OidcProvider | undefined {
  const configuration = stored?.message.configuration;
  return stored && configuration?.case === 'oidc' ? { uid: stored.uid, oidc: configuration.value } : undefined;
}

function requireClaims({ claims, rejection }: TokenVerification): JwtClaims {
  if (rejection) throw unauthenticated(rejection.reason);
  return claims;
}

/**
 * Ranks the rejections of several identities by how much they help the sender: most, when the token itself is invalid,
 * and least, when the token is of another issuer or subject than an identity requires.
 */
function helpfulness({ kind, claim }: TokenRejection): number {
  if (kind === 'claim') return claim === 'iss' || claim === 'sub' ? 0 : 1;
  return kind === 'identity' ? 2 : 3;
}

/**
 * The error for a token that does not match the requested identity or identity provider. A uid that does not exist gets
 * the same error as a wrong issuer, so that clients cannot find out which uids exist.
 */
export const claimMismatch = (claim: string): ApiError => denied(mismatchMessage(claim));

const toApiError = ({ kind, reason }: TokenRejection): ApiError =>
  kind === 'claim' || kind === 'identity' ? denied(reason) : unauthenticated(reason);

/** Access tokens contain these claims, so their length is limited. */
const MAX_CLAIM_LENGTH = 1024;

function readClaims(claims: JwtClaims): FederatedClaims {
  const { iss = '', sub = '', aud = [], exp = 0, email, email_verified } = claims;
  const audiences = [aud].flat();
  for (const [claim, text] of Object.entries({ iss, sub, aud: audiences.join(',') })) {
    if (text === '' || text.length > MAX_CLAIM_LENGTH) {
      throw unauthenticated(`invalid "${claim}" in the token: it must have 1 to ${MAX_CLAIM_LENGTH} characters`);
    }
  }
  const address = typeof email === 'string' && /^[^\s\p{Cc}]{1,254}$/u.test(email) ? email : undefined;
  return {
    issuer: iss,
    subject: sub,
    audiences,
    expires: exp * 1000,
    // Some issuers write `email_verified` as a string.
    email:
      address === undefined ? undefined : { address, verified: email_verified === true || email_verified === 'true' },
  };
}

/** Returns those groups of a token that are mapped to roles. A token can name thousands of groups. */
async function mappedGroups(db: Reader, { uid, oidc }: OidcProvider, claims: JwtClaims): Promise<string[]> {
  if (oidc.groupsClaim === '' || !Object.hasOwn(claims, oidc.groupsClaim)) return [];
  const claimed = new Set([claims[oidc.groupsClaim]].flat());
  const mappings = await findChildren(db, externalGroupRoleMappings, uid);
  const mapped = mappings.map(({ message }) => message.externalGroupId);
  return [...new Set(mapped)].filter((group) => claimed.has(group)).sort();
}
