import { create, equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../../../base/errors.ts';
import { patternProblem } from '../../../base/pattern.ts';
import {
  type Identity,
  type Identity_AWSIdentity,
  IdentitySchema,
  RelationshipType,
  ServicePrincipal,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import * as rules from '../../../resource/rules.ts';
import { claimMatchProblems } from './claim-match-rules.ts';
import {
  hasUsableKey,
  MAX_STATIC_KEYS_LIFETIME_MS,
  staticKeysProblems,
  staticKeysWarning,
} from './static-keys-rules.ts';

/** How an identity authenticates. An identity without a relationship cannot log in. */
type Relationship = Identity['relationship'];

const TYPES: Readonly<Record<NonNullable<Relationship['case']>, RelationshipType>> = {
  claimMatch: RelationshipType.CLAIM_MATCH,
  staticKeys: RelationshipType.STATIC,
  awsIdentity: RelationshipType.AWS_IDENTITY,
  servicePrincipal: RelationshipType.SERVICE_PRINCIPAL,
};

export const relationshipType = ({ case: kind }: Relationship): RelationshipType =>
  kind ? TYPES[kind] : RelationshipType.UNSPECIFIED;

export const isSameRelationship = (a: Relationship, b: Relationship): boolean =>
  equals(IdentitySchema, create(IdentitySchema, { relationship: a }), create(IdentitySchema, { relationship: b }));

/** Whether some token authenticates the identity at `now`. The other relationships are stored only. */
export function canLogIn(relationship: Relationship, now: number): boolean {
  if (relationship.case === 'claimMatch') return true;
  if (relationship.case !== 'staticKeys') return false;
  const { expirationTime } = relationship.value;
  if (expirationTime !== undefined && timestampMs(expirationTime) <= now) return false;
  return hasUsableKey(relationship.value);
}

/** The issuer and subject of the tokens that the relationship accepts, as values or patterns; empty without them. */
export function issuerAndSubject(relationship: Relationship): { issuer: string; subject: string } {
  switch (relationship.case) {
    case 'staticKeys':
      return relationship.value;
    case 'claimMatch':
      return { issuer: relationship.value.iss.value ?? '', subject: relationship.value.sub.value ?? '' };
    default:
      return { issuer: '', subject: '' };
  }
}

/** Returns what is wrong with a new or changed relationship. `before` is the one that it replaces. */
export function relationshipProblems(relationship: Relationship, now: number, before?: Relationship): FieldViolation[] {
  switch (relationship.case) {
    case 'claimMatch':
      return claimMatchProblems(relationship.value);
    case 'staticKeys':
      return staticKeysProblems(relationship.value, now, before?.case === 'staticKeys' ? before.value : undefined);
    case 'awsIdentity':
      return awsProblems(relationship.value);
    case 'servicePrincipal':
      return principalProblems(relationship.value);
    default:
      return [];
  }
}

/** Returns what a client should know about a relationship that is accepted as it is. */
export const relationshipWarning = (relationship: Relationship): string | undefined =>
  relationship.case === 'staticKeys' ? staticKeysWarning(relationship.value) : undefined;

/** Sets the longest allowed expiry for static keys without one, because keys must not be trusted forever. */
export function setDefaultExpiry(relationship: Relationship, now: number): void {
  if (relationship.case !== 'staticKeys') return;
  relationship.value.expirationTime ??= timestampFromMs(now + MAX_STATIC_KEYS_LIFETIME_MS);
}

const AWS_ACCOUNT = /^[0-9]{12}$/;
/** The server never compares the ARN and the user id with anything, so every text of a reasonable length is accepted. */
const text = rules.text();

function awsProblems({ awsAccount, awsArn, awsUserId }: Identity_AWSIdentity): FieldViolation[] {
  const problems: [field: string, problem: string | undefined][] = [
    ['aws_account', AWS_ACCOUNT.test(awsAccount) ? undefined : 'must be 12 digits'],
    awsArn.case === 'arnPattern'
      ? ['arn_pattern', patternProblem(awsArn.value)]
      : ['arn', awsArn.value === undefined ? undefined : text(awsArn.value)],
    awsUserId.case === 'userIdPattern'
      ? ['user_id_pattern', patternProblem(awsUserId.value)]
      : ['user_id', awsUserId.value === undefined ? undefined : text(awsUserId.value)],
  ];
  return problems.flatMap(([field, description]) =>
    description === undefined ? [] : [{ field: `aws_identity.${field}`, description }],
  );
}

function principalProblems(principal: ServicePrincipal): FieldViolation[] {
  const isKnown = principal !== ServicePrincipal.UNSPECIFIED && ServicePrincipal[principal] !== undefined;
  return isKnown ? [] : [{ field: 'service_principal', description: `${principal} is not a known service principal` }];
}
