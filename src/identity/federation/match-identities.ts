import { setImmediate } from 'node:timers/promises';
import { unauthenticated } from '../../base/errors.ts';
import { createPatternBudget } from '../../base/pattern.ts';
import { parentOf, ROOT, rootOf } from '../../base/uid.ts';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { candidateUids, identities } from '../../domains/iam/identities/identities.ts';
import { bindingsOf } from '../../domains/iam/roles/role-bindings.ts';
import type { Stored } from '../../resource/definition.ts';
import { findAll } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { credentialFingerprintOf } from '../login/login-validity.ts';
import type { JwtClaims } from '../tokens/jwt.ts';
import type { TokenRejection } from '../tokens/token-signature.ts';
import type { MatchedIdentity } from './choose-identity.ts';
import type { FederatedTokenVerifier, TokenVerification } from './verify-token.ts';

/**
 * The work of the patterns that one token is compared with. Each organization has a share of its own, so that the
 * patterns of others do not prevent its logins: at most some 1 ms of processor time, and enough for 10 to 30 patterns such
 * as `repo:my-org/.*:ref:refs/heads/main`. What exceeds the shares comes from a pool of some 25 ms for all.
 */
const ORGANIZATION_SHARE = 50_000;
const POOL = 1_000_000;
/** Other requests run after this time. */
const MAX_BLOCKING_MS = 10;

export interface MatchOptions {
  readonly db: Reader;
  readonly verifier: FederatedTokenVerifier;
}

export interface MatchedLogin extends MatchedIdentity {
  /** The result of `credentialFingerprintOf` when the token was compared with the identity. */
  readonly credentialFingerprint: string;
}

export interface IdentityMatches {
  readonly claims: JwtClaims;
  /** At least one. */
  readonly matches: readonly MatchedLogin[];
}

/**
 * Finds all identities that a token authenticates, among those for which `isEligible` returns true. Throws
 * UNAUTHENTICATED if there is none.
 */
export async function matchIdentities(
  { db, verifier }: MatchOptions,
  token: string,
  audience: string,
  isEligible: (uid: string) => boolean = () => true,
): Promise<IdentityMatches> {
  const { iss = '', sub = '' } = requireClaims(verifier.unverifiedClaims(token));
  const candidates = await findAll(db, identities, (await candidateUids(db, iss, sub)).filter(isEligible));
  const byOrganization = Map.groupBy(candidates, ({ uid }) => rootOf(uid));
  const matches: MatchedLogin[] = [];
  const rejections: TokenRejection[] = [];
  let claims: JwtClaims | undefined;
  let isIssuerRefused = false;
  const pool = createPatternBudget(POOL);
  let resumed = performance.now();
  for (const group of byOrganization.values()) {
    const budget = createPatternBudget(ORGANIZATION_SHARE, pool);
    for (const candidate of group.sort(exactFirst)) {
      const { message } = candidate;
      const usesIssuerKeys = message.relationship.case === 'claimMatch';
      // The keys of the issuer are the same for all of these identities, so the others would refuse the token too.
      if (usesIssuerKeys && isIssuerRefused) continue;
      if (performance.now() - resumed > MAX_BLOCKING_MS) {
        await setImmediate();
        resumed = performance.now();
      }
      const verified = await verifier.verify(token, message, audience, budget);
      if (verified.claims) {
        claims = verified.claims;
        matches.push(toMatch(candidate));
      } else {
        rejections.push(verified.rejection);
        isIssuerRefused ||= usesIssuerKeys && isAboutSignature(verified.rejection);
      }
    }
  }
  if (!claims) throw unauthenticated(mostHelpfulReason(rejections));
  if (matches.length === 1) return { claims, matches };
  return { claims, matches: await Promise.all(matches.map((match) => withOrganizations(db, match))) };
}

export function requireClaims({ claims, rejection }: TokenVerification): JwtClaims {
  if (rejection) throw unauthenticated(rejection.reason);
  return claims;
}

const isAboutSignature = ({ kind }: TokenRejection): boolean => kind === 'token' || kind === 'issuer';

/** Exact identities need no part of the budget for their issuer and subject. */
const exactFirst = (a: Stored<Identity>, b: Stored<Identity>): number =>
  Number(specificityOf(b.message) === 'exact') - Number(specificityOf(a.message) === 'exact') || a.created - b.created;

const toMatch = (stored: Stored<Identity>): MatchedLogin => ({
  uid: stored.uid,
  created: stored.created,
  credentialFingerprint: credentialFingerprintOf(stored),
  specificity: specificityOf(stored.message),
});

const ANY_TEXT = /^\^?(?:\(\?[imsU]+\))?\(?\.[*+]\)?\$?$/;

function specificityOf({ relationship }: Identity): MatchedIdentity['specificity'] {
  if (relationship.case !== 'claimMatch') return 'exact';
  const { iss, sub, claims, claimPatterns } = relationship.value;
  if (iss.case === 'issuer' && sub.case === 'subject') return 'exact';
  const hasOtherClaims = Object.keys(claims).length + Object.keys(claimPatterns).length > 0;
  const isAnySubject = sub.case === 'subjectPattern' && ANY_TEXT.test(sub.value) && !hasOtherClaims;
  return isAnySubject ? 'any subject' : 'pattern';
}

async function withOrganizations(db: Reader, match: MatchedLogin): Promise<MatchedLogin> {
  if (parentOf(match.uid) !== ROOT) return match;
  const bindings = await bindingsOf(db, match.uid);
  return { ...match, organizations: [...new Set(bindings.map(({ parent }) => rootOf(parent)))] };
}

function mostHelpfulReason(rejections: readonly TokenRejection[]): string {
  const [mostHelpful] = rejections.toSorted((a, b) => helpfulness(b) - helpfulness(a));
  return (
    mostHelpful?.reason ?? 'no identity matches the issuer and subject of this token; register or use another token'
  );
}

/**
 * Ranks the rejections of several identities by how much they help the sender: most, when the token itself is invalid,
 * and least, when the token is of another issuer or subject than an identity requires.
 */
function helpfulness({ kind, claim }: TokenRejection): number {
  if (kind === 'claim') return claim === 'iss' || claim === 'sub' ? 0 : 1;
  return kind === 'identity' ? 2 : 3;
}
