import type { FieldViolation } from '../../../base/errors.ts';
import { issuerPatternKeys, NO_LITERAL_HOST } from '../../../base/issuer-pattern.ts';
import {
  canonicalIssuer,
  isPrivateHost,
  isPrivateIssuer,
  issuerProblem,
  PRIVATE_ISSUER,
} from '../../../base/issuer-url.ts';
import { patternProblem } from '../../../base/pattern.ts';
import type { Identity_ClaimMatch } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';

const MAX_VALUE = 1024;
const MAX_NAME = 256;
const MAX_CLAIMS = 20;

/** Returns what is wrong with the claims that an identity requires of its tokens. */
export function claimMatchProblems(match: Identity_ClaimMatch): FieldViolation[] {
  const problems: (FieldViolation | undefined)[] = [
    issuerViolation(match.iss),
    subjectViolation(match.sub),
    audienceViolation(match.aud),
    ...claimViolations('claim_match.claims', match.claims, valueProblem),
    ...claimViolations('claim_match.claim_patterns', match.claimPatterns, patternProblem),
  ];
  return problems.filter((problem) => problem !== undefined);
}

function issuerViolation(iss: Identity_ClaimMatch['iss']): FieldViolation | undefined {
  switch (iss.case) {
    case 'issuer':
      return violation('claim_match.issuer', issuerProblem(canonicalIssuer(iss.value)));
    case 'issuerPattern':
      return violation('claim_match.issuer_pattern', patternProblem(iss.value) ?? hostProblem(iss.value));
    case undefined:
      return violation('claim_match.issuer', 'is required, or issuer_pattern in its place');
  }
}

function subjectViolation(sub: Identity_ClaimMatch['sub']): FieldViolation | undefined {
  switch (sub.case) {
    case 'subject':
      return violation('claim_match.subject', valueProblem(sub.value));
    case 'subjectPattern':
      return violation('claim_match.subject_pattern', patternProblem(sub.value));
    case undefined:
      return violation('claim_match.subject', 'is required, or subject_pattern in its place');
  }
}

function audienceViolation(aud: Identity_ClaimMatch['aud']): FieldViolation | undefined {
  switch (aud.case) {
    case 'audience':
      return violation('claim_match.audience', valueProblem(aud.value));
    case 'audiencePattern':
      return violation('claim_match.audience_pattern', patternProblem(aud.value));
    case undefined:
      return undefined;
  }
}

function claimViolations(
  field: string,
  claims: Readonly<Record<string, string>>,
  problemOf: (value: string) => string | undefined,
): (FieldViolation | undefined)[] {
  const entries = Object.entries(claims);
  if (entries.length > MAX_CLAIMS) return [violation(field, `must have at most ${MAX_CLAIMS} entries`)];
  return entries.map(([name, value]) => {
    if (name.length === 0 || name.length > MAX_NAME) {
      return violation(field, `names of claims must have 1 to ${MAX_NAME} characters`);
    }
    return violation(`${field}[${name}]`, problemOf(value));
  });
}

const violation = (field: string, description: string | undefined): FieldViolation | undefined =>
  description === undefined ? undefined : { field, description };

export const valueProblem = (value: string): string | undefined =>
  value.length > 0 && value.length <= MAX_VALUE ? undefined : `must have 1 to ${MAX_VALUE} characters`;

/** Refuses a pattern whose wildcards decide which hosts are trusted: a third party could have such a host. */
const hostProblem = (pattern: string): string | undefined =>
  issuerPatternKeys(pattern).length > 0 ? undefined : NO_LITERAL_HOST;

/** Whether tokens are matched by at least one pattern. */
export const hasPattern = ({ iss, sub, aud, claimPatterns }: Identity_ClaimMatch): boolean =>
  iss.case === 'issuerPattern' ||
  sub.case === 'subjectPattern' ||
  aud.case === 'audiencePattern' ||
  Object.keys(claimPatterns).length > 0;

/** Refuses claims whose issuer is at a private address. */
export function privateIssuerProblems({ iss }: Identity_ClaimMatch): FieldViolation[] {
  if (iss.case === 'issuerPattern' && issuerPatternKeys(iss.value).some(isPrivateHost)) {
    return [{ field: 'claim_match.issuer_pattern', description: PRIVATE_ISSUER }];
  }
  if (iss.case === 'issuer' && isPrivateIssuer(iss.value)) {
    return [{ field: 'claim_match.issuer', description: PRIVATE_ISSUER }];
  }
  return [];
}
