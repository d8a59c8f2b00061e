import type { Clock } from '../../base/clock.ts';
import { type ApiError, denied, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { parentOf, ROOT, rootOf } from '../../base/uid.ts';
import type {
  IdentityProvider,
  IdentityProvider_OIDC,
} from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { disabledOf } from '../../domains/iam/disabled.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { externalGroupRoleMappings } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import type { Stored } from '../../resource/definition.ts';
import { find, findAll, findChildren, findReferring } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import type { ProviderMembership } from '../login/login-validity.ts';
import type { Email } from '../tokens/access-tokens.ts';
import type { JwtClaims } from '../tokens/jwt.ts';
import type { TokenRejection } from '../tokens/token-signature.ts';
import { chooseIdentity } from './choose-identity.ts';
import { hasAudience, mismatchMessage } from './claim-match.ts';
import { type MatchedLogin, type MatchOptions, matchIdentities, requireClaims } from './match-identities.ts';

/** The claims of a verified federated token. */
export interface FederatedClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  /** In milliseconds. */
  readonly expires: number;
  /** When the token was issued, in milliseconds. A token that does not say so counts as one that is valid for a day. */
  readonly issuedAt?: number | undefined;
  readonly email?: Email | undefined;
}

/** A verified federated token and the identity that it authenticates. */
export interface FederatedLogin extends FederatedClaims {
  readonly identity: string;
  readonly provider?: ProviderMembership | undefined;
}

/** What a client says about the identity that a token is to authenticate. */
export interface RequestedLogin {
  readonly identity?: string | undefined;
  readonly identityProvider?: string | undefined;
  /** The uids that the login is to be restricted to. */
  readonly scopes?: readonly string[] | undefined;
}

/**
 * Determines the identity that a federated token authenticates: the requested one, or else the one that `chooseIdentity`
 * chooses. A login through an identity provider means a person, or an identity of the organization of the provider.
 * Throws UNAUTHENTICATED for an invalid token, and for one that identities of several organizations match. Throws
 * PERMISSION_DENIED with the name of the claim, such as `invalid "sub"`, for a token that does not match the requested
 * identity.
 */
export type AuthenticateFederated = (token: string, requested: RequestedLogin) => Promise<FederatedLogin>;

/** A verified federated token and all identities that it matches: at least one. */
export interface FederatedMatches extends FederatedClaims {
  /** The time of the comparison, in milliseconds. */
  readonly authenticatedAt: number;
  readonly matches: readonly MatchedLogin[];
}

/** Finds the identities that a federated token authenticates. Throws UNAUTHENTICATED if there is none. */
export type MatchFederated = (token: string) => Promise<FederatedMatches>;

/**
 * Verifies a federated token of a user who may have no identity yet: its signature, its validity period, and that its
 * audience is this server or the client id of an identity provider. The issuer must be that of an identity provider.
 */
export type VerifyUnregistered = (token: string) => Promise<FederatedClaims>;

export interface FederatedLoginOptions extends MatchOptions {
  /** The audience that a federated token must have, unless its identity or identity provider names another one. */
  readonly publicUrl: string;
}

export function createFederatedMatcher(options: FederatedLoginOptions & { readonly clock: Clock }): MatchFederated {
  return async (token) => {
    const authenticatedAt = options.clock();
    const { claims, matches } = await matchIdentities(options, token, options.publicUrl);
    return { ...readClaims(claims), authenticatedAt, matches };
  };
}

export function createFederatedAuthenticator(options: FederatedLoginOptions): AuthenticateFederated {
  const { db, verifier, publicUrl } = options;

  async function verifyRequested(token: string, uid: string, audience: string): Promise<IdentityOfToken> {
    const stored = await find(db, identities, uid);
    if (!stored) throw claimMismatch('iss');
    const { claims, rejection } = await verifier.verify(token, stored.message, audience);
    if (rejection) throw toApiError(rejection);
    return { identity: uid, claims };
  }

  async function verifyAny(
    token: string,
    audience: string,
    scopes: readonly string[],
    provider: OidcProvider | undefined,
  ): Promise<IdentityOfToken> {
    const isEligible = provider && ((uid: string) => isPersonOrWithin(uid, provider));
    const { claims, matches } = await matchIdentities(options, token, audience, isEligible);
    const chosen = chooseIdentity(matches, provider ? [] : scopes.map(rootOf));
    if (!chosen) throw ambiguousIdentity();
    return { identity: chosen.uid, claims };
  }

  return async (token, { identity: requested, identityProvider, scopes = [] }) => {
    const provider = identityProvider === undefined ? undefined : await requireProvider(token, identityProvider);
    if (provider && requested !== undefined && !isPersonOrWithin(requested, provider)) throw claimMismatch('iss');
    const audience = provider?.oidc.clientId ?? publicUrl;
    const { identity, claims } =
      requested === undefined
        ? await verifyAny(token, audience, scopes, provider)
        : await verifyRequested(token, requested, audience);
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
    const uids = await findReferring(db, identityProviders, 'issuer', canonicalIssuer(iss));
    const providers = (await findAll(db, identityProviders, uids)).filter(({ state }) => !disabledOf(state));
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

interface IdentityOfToken {
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

/** Whether an identity is that of a person, or of the organization of the provider. */
const isPersonOrWithin = (identity: string, provider: OidcProvider): boolean =>
  parentOf(identity) === ROOT || rootOf(identity) === rootOf(provider.uid);

/** The error for a token that identities of several organizations match. It does not name them. */
export const ambiguousIdentity = (): ApiError =>
  unauthenticated(
    'identities of several organizations match this token, and the request does not tell which of them is meant; ' +
      'exchange the token with the uid of one as `identity`, or name a group of the organization in the request',
  );

/**
 * The error for a token that does not match the requested identity or identity provider. A uid that does not exist gets
 * the same error as a wrong issuer, so that clients cannot find out which uids exist.
 */
export const claimMismatch = (claim: string): ApiError => denied(mismatchMessage(claim));

const toApiError = ({ kind, reason }: TokenRejection): ApiError =>
  kind === 'claim' || kind === 'identity' ? denied(reason) : unauthenticated(reason);

const DAY_S = 24 * 60 * 60;
/** Access tokens contain these claims, so their length is limited. */
const MAX_CLAIM_LENGTH = 1024;

function readClaims(claims: JwtClaims): FederatedClaims {
  const { iss = '', sub = '', aud = [], exp = 0, iat, nbf, email, email_verified } = claims;
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
    issuedAt: (iat ?? nbf ?? exp - DAY_S) * 1000,
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
