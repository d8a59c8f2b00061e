import type { JWTPayload } from 'jose';
import { matchesIssuerPattern } from '../../base/issuer-pattern.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { matchesPattern, type PatternBudget } from '../../base/pattern.ts';
import type { Identity_ClaimMatch } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';

/**
 * Returns the name of the first claim that does not match, or undefined when all claims match. A pattern for which
 * `budget` is not enough does not match.
 */
export function findMismatchedClaim(
  match: Identity_ClaimMatch,
  claims: JWTPayload,
  defaultAudience: string,
  budget?: PatternBudget,
): string | undefined {
  if (!issuerMatches(match, claims.iss, budget)) return 'iss';
  if (!subjectMatches(match, claims.sub, budget)) return 'sub';
  if (!audienceMatches(match, claims.aud, defaultAudience, budget)) return 'aud';
  for (const [name, value] of Object.entries(match.claims)) {
    if (!stringsOf(claims, name).includes(value)) return name;
  }
  for (const [name, pattern] of Object.entries(match.claimPatterns)) {
    if (!stringsOf(claims, name).some((text) => matchesPattern(pattern, text, budget))) return name;
  }
  return undefined;
}

/** The error message for a claim that does not match. It does not reveal the value that would match. */
export const mismatchMessage = (claim: string): string =>
  `invalid "${claim}" in the token: it does not match the identity or identity provider. ` +
  'Use another token, or request another identity';

export function issuerMatches({ iss }: Identity_ClaimMatch, claim: unknown, budget?: PatternBudget): boolean {
  if (!isNonEmptyString(claim)) return false;
  const issuer = canonicalIssuer(claim);
  if (iss.case === 'issuer') return canonicalIssuer(iss.value) === issuer;
  return iss.case === 'issuerPattern' && matchesIssuerPattern(iss.value, issuer, budget);
}

function subjectMatches({ sub }: Identity_ClaimMatch, claim: unknown, budget?: PatternBudget): boolean {
  if (!isNonEmptyString(claim)) return false;
  if (sub.case === 'subject') return sub.value === claim;
  return sub.case === 'subjectPattern' && matchesPattern(sub.value, claim, budget);
}

function audienceMatches(
  { aud }: Identity_ClaimMatch,
  claim: unknown,
  defaultAudience: string,
  budget?: PatternBudget,
): boolean {
  if (aud.case !== 'audiencePattern') return hasAudience(claim, [aud.value ?? defaultAudience]);
  return audiencesOf(claim).some((audience) => matchesPattern(aud.value, audience, budget));
}

/** Whether an `aud` claim contains one of the accepted audiences. */
export const hasAudience = (claim: unknown, accepted: readonly string[]): boolean =>
  audiencesOf(claim).some((audience) => accepted.includes(audience));

/** An `aud` claim is a string or a list of strings (RFC 7519, section 4.1.3). */
const audiencesOf = (claim: unknown): string[] => [claim].flat().filter(isNonEmptyString);

/** Returns the values of a claim as strings. A list has several, an object has none. */
function stringsOf(claims: JWTPayload, name: string): string[] {
  if (!Object.hasOwn(claims, name)) return [];
  return [claims[name]].flat().flatMap((value) => {
    if (typeof value === 'string') return [value];
    return typeof value === 'number' || typeof value === 'boolean' ? [JSON.stringify(value)] : [];
  });
}

const isNonEmptyString = (value: unknown): value is string => typeof value === 'string' && value !== '';
