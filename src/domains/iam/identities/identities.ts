import { createHash } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ApiError, quotaExceeded } from '../../../base/errors.ts';
import { issuerHostKeys, issuerPatternKeys } from '../../../base/issuer-pattern.ts';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import { parentOf, ROOT, rootOf, type Uid } from '../../../base/uid.ts';
import { NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type CreateIdentityRequest,
  IdentitiesService,
  type Identity,
  IdentitySchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { methodId } from '../../../contract/method.ts';
import { defineResource, type Resource, type Rule } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import {
  type Operations,
  type WriteContext,
  type WriteHandlers,
  warn,
  writeOperation,
} from '../../../resource/operation.ts';
import { areReferringBelow, findReferring, findUidsReferringAny } from '../../../resource/read.ts';
import { holdsServerWide } from '../../../resource/require-capabilities.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { refuse } from '../../../resource/validate.ts';
import { deleteOne } from '../../../resource/write.ts';
import type { Reader } from '../../../store/store.ts';
import { requireOwnersRemain } from '../access/last-owner.ts';
import { requireGrantable } from '../access/require-grantable.ts';
import { controllingGroup } from '../groups/founder.ts';
import { forgetMember } from '../groups/members.ts';
import { bindingsOf, roleBindings } from '../roles/role-bindings.ts';
import { capabilitiesOf, requireRoleRevocable } from '../roles/roles.ts';
import { hasPattern, privateIssuerProblems } from './claim-match-rules.ts';
import {
  canLogIn,
  isSameRelationship,
  relationshipProblems,
  relationshipType,
  relationshipWarning,
  setDefaultExpiry,
} from './relationship.ts';

const company: Rule<string> = (value) =>
  /^[\S ]{0,255}$/.test(value) ? undefined : 'must be one line of at most 255 characters';

/**
 * A person or a machine that calls the API. The identity of a machine belongs to a group and has no access outside of
 * it, except in organizations that it has founded. The identity of a person has no parent.
 */
export const identities = defineResource({
  kind: 'identity',
  plural: 'identities',
  schema: IdentitySchema,
  parents: ['group', ROOT],
  grantsAccess: 'unless new',
  rules: { name: rules.name({ max: rules.MAX_LINE }), description: rules.description, company },
  orders: { name: (identity) => identity.name },
  facets: { relationship_type: ({ relationship }) => [String(relationshipType(relationship))] },
  references: {
    subject: (identity) => loginKeys(identity).subject ?? [],
    issuer: (identity) => loginKeys(identity).issuer ?? [],
    pattern: (identity) => loginKeys(identity).pattern ?? [],
    with_pattern: ({ relationship }) => (usesPattern(relationship) ? [WITH_PATTERN] : []),
  },

  async beforeCreate(ctx, identity, { parent }) {
    const { db, now } = ctx;
    refuse(relationshipProblems(identity.relationship, now));
    warnAbout(ctx, identity);
    await requireWithinQuotas(db, identity, parent);
    setDefaultExpiry(identity.relationship, now);
    return undefined;
  },

  async beforeUpdate(ctx, { uid, message: before }, identity) {
    if (isSameRelationship(before.relationship, identity.relationship)) return undefined;
    refuse(relationshipProblems(identity.relationship, ctx.now, before.relationship));
    warnAbout(ctx, identity);
    await requireWithinQuotas(ctx.db, identity, parentOf(uid), uid);
    setDefaultExpiry(identity.relationship, ctx.now);
    await requireRolesGrantable(ctx, uid);
    if (!canLogIn(identity.relationship, ctx.now)) await requireOwnersRemain(ctx, await bindingsOf(ctx.db, uid));
    return undefined;
  },

  async beforeDelete(ctx, { uid, parent }) {
    const bindings = await bindingsOf(ctx.db, uid);
    // People can delete themselves, and operators can delete every identity: both are decided before this.
    if (parent !== ROOT && !holdsServerWide(DELETE_ANY, ctx.caller)) {
      for (const { message, parent: group } of bindings) {
        await requireRoleRevocable(ctx, message.roleUid, controllingGroup(uid, group));
      }
    }
    await requireOwnersRemain(ctx, bindings);
    for (const binding of bindings) await deleteOne(ctx.db, roleBindings, binding);
    forgetMember(ctx.db, uid);
  },
});

const DELETE_ANY = [Capability.CAP_SERVER_IDENTITIES_DELETE];

export interface IdentityOptions {
  /** Whether identities may trust issuers at private addresses. */
  readonly allowPrivateIssuers: boolean;
}

export function identityOperations(engine: Engine, { allowPrivateIssuers }: IdentityOptions): Operations {
  const operationsOf = (resource: Resource<typeof IdentitySchema>): Operations =>
    withLastSeenOfCreation(standardOperations(engine, resource, IdentitiesService));
  if (allowPrivateIssuers) return operationsOf(identities);
  const refusePrivateIssuer = ({ relationship }: Identity): void => {
    if (relationship.case === 'claimMatch') refuse(privateIssuerProblems(relationship.value));
  };
  const resource: Resource<typeof IdentitySchema> = {
    ...identities,
    beforeCreate(ctx, identity, at) {
      refusePrivateIssuer(identity);
      return identities.beforeCreate?.(ctx, identity, at);
    },
    beforeUpdate(ctx, before, identity, touched) {
      if (!isSameRelationship(before.message.relationship, identity.relationship)) refusePrivateIssuer(identity);
      return identities.beforeUpdate?.(ctx, before, identity, touched);
    },
  };
  return operationsOf(resource);
}

/**
 * Adds `last_seen_time` to the response of a create, as the specification requires. It is not stored: an identity that
 * has never called has none.
 */
function withLastSeenOfCreation(operations: Operations): Operations {
  const { createIdentity } = IdentitiesService.method;
  const operation = operations[methodId(createIdentity)];
  if (operation?.mode !== 'write') throw new Error('CreateIdentity is not a write operation');
  return {
    ...operations,
    ...writeOperation<typeof createIdentity, unknown>(createIdentity, {
      ...operation,
      async run(ctx, request, prepared) {
        const identity = (await operation.run(ctx, request, prepared)) as Identity;
        return { ...identity, lastSeenTime: timestampFromMs(ctx.now) };
      },
    } as WriteHandlers<CreateIdentityRequest, Identity, unknown>),
  };
}

function warnAbout(ctx: WriteContext, { relationship }: Identity): void {
  const warning = relationshipWarning(relationship);
  if (warning !== undefined) warn(ctx, warning);
}

/** Refuses a caller that could not grant all roles of the identity: a new relationship gives them to another login. */
async function requireRolesGrantable(ctx: WriteContext, uid: Uid): Promise<void> {
  for (const { parent, message } of await bindingsOf(ctx.db, uid)) {
    const capabilities = await capabilitiesOf(ctx.db, message.roleUid);
    requireGrantable(ctx, capabilities ?? NO_CAPABILITIES, controllingGroup(uid, parent));
  }
}

/** The reference by which the issuer and subject of a token find an identity. A digest, because both can be long. */
export const subjectKey = (issuer: string, subject: string): string =>
  createHash('sha256')
    .update(JSON.stringify([canonicalIssuer(issuer), subject]))
    .digest('base64url');

/** The value of the reference that all identities with a pattern have. */
const WITH_PATTERN = 'yes';

const usesPattern = ({ case: kind, value }: Identity['relationship']): boolean =>
  kind === 'claimMatch' && hasPattern(value);

interface LoginKeys {
  readonly subject?: readonly string[];
  readonly issuer?: readonly string[];
  readonly pattern?: readonly string[];
}

function loginKeys({ relationship }: Identity): LoginKeys {
  if (relationship.case === 'staticKeys') {
    return { subject: [subjectKey(relationship.value.issuer, relationship.value.subject)] };
  }
  if (relationship.case !== 'claimMatch') return {};
  const { iss, sub } = relationship.value;
  if (iss.case !== 'issuer') return { pattern: issuerPatternKeys(iss.value ?? '') };
  if (sub.case !== 'subject') return { issuer: [canonicalIssuer(iss.value)] };
  return { subject: [subjectKey(iss.value, sub.value)] };
}

/** The identities that a token with this issuer and subject may match. Patterns and other claims are not checked. */
export async function candidateUids(db: Reader, issuer: string, subject: string): Promise<string[]> {
  const canonical = canonicalIssuer(issuer);
  const hostKeys = issuerHostKeys(canonical);
  const found = [
    await findReferring(db, identities, 'subject', subjectKey(issuer, subject)),
    await findReferring(db, identities, 'issuer', canonical),
    hostKeys.length > 0 ? await findUidsReferringAny(db, identities, 'pattern', hostKeys) : [],
  ];
  return found.flat();
}

// Every token is compared with all identities that it may match, so one organization may have a limited number of them.
const MAX_WITH_PATTERN = 500;
const MAX_WITH_SAME_SUBJECT = 200;

async function requireWithinQuotas(db: Reader, identity: Identity, parent: string, self?: string): Promise<void> {
  if (parent === ROOT) return;
  const areThere = (count: number, field: string, value: string) =>
    areReferringBelow(db, identities, [field, value], rootOf(parent), count, self);
  if (usesPattern(identity.relationship) && (await areThere(MAX_WITH_PATTERN, 'with_pattern', WITH_PATTERN))) {
    throw tooMany(
      parent,
      `${MAX_WITH_PATTERN} identities with patterns; name the issuer and subject exactly, or delete some`,
    );
  }
  const [subject] = loginKeys(identity).subject ?? [];
  if (subject !== undefined && (await areThere(MAX_WITH_SAME_SUBJECT, 'subject', subject))) {
    throw tooMany(parent, `${MAX_WITH_SAME_SUBJECT} identities with the same issuer and subject; delete some`);
  }
}

const tooMany = (parent: string, limit: string): ApiError =>
  quotaExceeded(`organization:${rootOf(parent)}`, `an organization can have at most ${limit}`);
