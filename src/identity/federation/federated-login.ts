import { type ApiError, denied, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import type { ExternalGroupRoleMapping } from '../../contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
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
import type { VerifyStranger } from '../login/registration.ts';
import { type AuthenticateUpstream, noMatch, type UpstreamClaims } from '../sts/exchange.ts';
import type { Claims } from '../tokens/jwt.ts';
import type { Refusal } from '../tokens/token-signature.ts';
import { hasAudience } from './claim-match.ts';
import type { Verdict, Verifier } from './verify-token.ts';

export interface UpstreamOptions {
  readonly db: Reader;
  readonly verifier: Verifier;
  /** Whom a third party's token must be meant for, unless an identity or a provider says otherwise. */
  readonly publicUrl: () => string;
}

/** Finds out whom tokens of other issuers speak for. */
export function authenticateUpstream({ db, verifier, publicUrl }: UpstreamOptions): AuthenticateUpstream {
  /** The identity that is wanted, whichever claim speaks against it. */
  async function asWanted(token: string, uid: string, audience: string): Promise<Proven> {
    const stored = await find(db, identities, uid);
    if (!stored) throw noMatch('iss');
    const { claims, refusal } = await verifier.verify(token, stored.message as Identity, audience);
    if (refusal) throw refusalOfWanted(refusal);
    return { identity: uid, claims };
  }

  /** The oldest that matches, so that nobody takes over a login by making a twin of its identity. */
  async function asOldest(token: string, audience: string): Promise<Proven> {
    const { iss = '', sub = '' } = claimsOf(verifier.unverifiedClaims(token));
    const candidates = await findAll(db, identities, await candidateUids(db, iss, sub));
    candidates.sort((a, b) => a.created - b.created || (a.uid < b.uid ? -1 : 1));
    const refusals: Refusal[] = [];
    for (const { uid, message } of candidates) {
      const { claims, refusal } = await verifier.verify(token, message as Identity, audience);
      if (claims) return { identity: uid, claims };
      refusals.push(refusal);
    }
    const telling = refusals.sort((a, b) => saysLittle(a) - saysLittle(b))[0];
    throw unauthenticated(telling?.reason ?? 'no identity matches the issuer and subject of this token');
  }

  return async (token, wanted) => {
    const provider =
      wanted.identityProvider === undefined ? undefined : await providerOf(token, wanted.identityProvider);
    const audience = provider?.oidc.clientId ?? publicUrl();
    const { identity, claims } =
      wanted.identity === undefined
        ? await asOldest(token, audience)
        : await asWanted(token, wanted.identity, audience);
    if (!provider) return { identity, ...readClaims(claims) };
    const groups = await mappedGroups(db, provider, claims);
    return { identity, ...readClaims(claims), provider: { uid: provider.uid, groups } };
  };

  async function providerOf(token: string, uid: string): Promise<OidcProvider> {
    const { iss = '' } = claimsOf(verifier.unverifiedClaims(token));
    const provider = oidcOf(await find(db, identityProviders, uid));
    if (!provider || provider.oidc.issuer !== canonicalIssuer(iss)) throw noMatch('iss');
    return provider;
  }
}

/** Verifies tokens of people who are nobody here yet. */
export function verifyStranger({ db, verifier, publicUrl }: UpstreamOptions): VerifyStranger {
  return async (token) => {
    const { iss = '' } = claimsOf(verifier.unverifiedClaims(token));
    const providers = await findAll(
      db,
      identityProviders,
      await findReferring(db, identityProviders, 'issuer', canonicalIssuer(iss)),
    );
    // No other issuer is contacted for the sake of a stranger.
    if (providers.length === 0) throw denied('no identity provider here has the issuer of this token');
    const claims = claimsOf(await verifier.verifyIssued(token, iss));
    const audiences = providers.flatMap((stored) => oidcOf(stored)?.oidc.clientId ?? []);
    if (!hasAudience(claims.aud, [publicUrl(), ...audiences])) throw unauthenticated('invalid "aud" in the token');
    return readClaims(claims);
  };
}

interface Proven {
  readonly identity: string;
  readonly claims: Claims;
}

interface OidcProvider {
  readonly uid: string;
  readonly oidc: IdentityProvider_OIDC;
}

function oidcOf(stored: Stored | undefined): OidcProvider | undefined {
  const { configuration } = (stored?.message as IdentityProvider | undefined) ?? {};
  return stored && configuration?.case === 'oidc' ? { uid: stored.uid, oidc: configuration.value } : undefined;
}

function claimsOf({ claims, refusal }: Verdict): Claims {
  if (refusal) throw unauthenticated(refusal.reason);
  return claims;
}

/** Something wrong with the token itself helps its sender most; what an unrelated identity expected, least. */
const saysLittle = ({ kind, claim }: Refusal): number =>
  kind === 'claim' ? (claim === 'iss' || claim === 'sub' ? 3 : 2) : kind === 'identity' ? 1 : 0;

function refusalOfWanted({ kind, claim = '', reason }: Refusal): ApiError {
  if (kind === 'claim') return noMatch(claim);
  return kind === 'identity' ? denied(reason) : unauthenticated(reason);
}

/** Longer ones are of no use to anybody, and our own token carries them along. */
const MAX_TEXT = 1024;

function readClaims(claims: Claims): UpstreamClaims {
  const { iss = '', sub = '', aud = [], email, email_verified } = claims;
  const audiences = [aud].flat();
  for (const [claim, text] of Object.entries({ iss, sub, aud: audiences.join(',') })) {
    if (text === '' || text.length > MAX_TEXT) throw unauthenticated(`invalid "${claim}" in the token`);
  }
  const address = typeof email === 'string' && /^[^\s\p{Cc}]{1,254}$/u.test(email) ? email : undefined;
  return {
    issuer: iss,
    subject: sub,
    audiences,
    // Some issuers write the truth as a text.
    email:
      address === undefined ? undefined : { address, verified: email_verified === true || email_verified === 'true' },
  };
}

/** Of the groups that a token names, those that a mapping makes use of: people can be in thousands. */
async function mappedGroups(db: Reader, { uid, oidc }: OidcProvider, claims: Claims): Promise<string[]> {
  if (oidc.groupsClaim === '' || !Object.hasOwn(claims, oidc.groupsClaim)) return [];
  const claimed = new Set([claims[oidc.groupsClaim]].flat());
  const mappings = await findChildren(db, externalGroupRoleMappings, uid);
  const mapped = mappings.map(({ message }) => (message as ExternalGroupRoleMapping).externalGroupId);
  return [...new Set(mapped)].filter((group) => claimed.has(group)).sort();
}
