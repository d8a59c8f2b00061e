import type { JWTPayload } from 'jose';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { matchesPattern } from '../../base/pattern.ts';
import type { Identity_ClaimMatch } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';

/** The name of the first claim that is not as an identity asks for it; nothing when all of them are. */
export function mismatch(match: Identity_ClaimMatch, claims: JWTPayload, ourAudience: string): string | undefined {
  if (!issuerMatches(match, claims.iss)) return 'iss';
  if (!subjectMatches(match, claims.sub)) return 'sub';
  if (!audienceMatches(match, claims.aud, ourAudience)) return 'aud';
  for (const [name, value] of Object.entries(match.claims)) {
    if (!textsOf(claims, name).includes(value)) return name;
  }
  for (const [name, pattern] of Object.entries(match.claimPatterns)) {
    if (!textsOf(claims, name).some((text) => matchesPattern(pattern, text))) return name;
  }
  return undefined;
}

export function issuerMatches({ iss }: Identity_ClaimMatch, claim: unknown): boolean {
  if (!isText(claim)) return false;
  const issuer = canonicalIssuer(claim);
  if (iss.case === 'issuer') return canonicalIssuer(iss.value) === issuer;
  return iss.case === 'issuerPattern' && matchesPattern(iss.value, issuer);
}

function subjectMatches({ sub }: Identity_ClaimMatch, claim: unknown): boolean {
  if (!isText(claim)) return false;
  if (sub.case === 'subject') return sub.value === claim;
  return sub.case === 'subjectPattern' && matchesPattern(sub.value, claim);
}

function audienceMatches({ aud }: Identity_ClaimMatch, claim: unknown, ourAudience: string): boolean {
  if (aud.case !== 'audiencePattern') return hasAudience(claim, [aud.value ?? ourAudience]);
  return audiences(claim).some((audience) => matchesPattern(aud.value, audience));
}

/** Whether a token is meant for one of these. */
export const hasAudience = (claim: unknown, wanted: readonly string[]): boolean =>
  audiences(claim).some((audience) => wanted.includes(audience));

/** One text or several (RFC 7519, section 4.1.3). */
const audiences = (claim: unknown): string[] => [claim].flat().filter(isText);

/** The values of a claim as text: a list has several, an object has none. */
function textsOf(claims: JWTPayload, name: string): string[] {
  if (!Object.hasOwn(claims, name)) return [];
  return [claims[name]].flat().flatMap((value) => {
    if (typeof value === 'string') return [value];
    return typeof value === 'number' || typeof value === 'boolean' ? [JSON.stringify(value)] : [];
  });
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
