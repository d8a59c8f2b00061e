import { createHash } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import { ROOT } from '../../../base/uid.ts';
import { NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import { type Identity, IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { defineResource, type Rule } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { findReferring } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { refuse } from '../../../resource/validate.ts';
import { deleteOne } from '../../../resource/write.ts';
import type { Reader } from '../../../store/store.ts';
import { requireGrantable } from '../access/require-grantable.ts';
import { bindingsOf, roleBindings } from '../roles/role-bindings.ts';
import { capabilitiesOf } from '../roles/roles.ts';
import { isSameRelationship, relationshipProblems, relationshipType, setDefaultExpiry } from './relationship.ts';

const company: Rule<string> = (value) =>
  /^[\S ]{0,255}$/.test(value) ? undefined : 'must be one line of at most 255 characters';

/**
 * A person or a machine that calls the API. The identity of a machine belongs to a group and has no access outside of
 * it. The identity of a person has no parent.
 */
export const identities = defineResource({
  kind: 'identity',
  plural: 'identities',
  schema: IdentitySchema,
  parents: ['group', ROOT],
  grantsAccess: 'unless new',
  rules: { name: rules.name(), description: rules.description, company },
  orders: { name: (identity) => identity.name },
  facets: { relationship_type: ({ relationship }) => [String(relationshipType(relationship))] },
  references: {
    subject: (identity) => loginKeys(identity).subject ?? [],
    issuer: (identity) => loginKeys(identity).issuer ?? [],
    pattern: (identity) => loginKeys(identity).pattern ?? [],
  },

  beforeCreate({ now }, identity) {
    refuse(relationshipProblems(identity.relationship, now));
    setDefaultExpiry(identity.relationship, now);
    identity.lastSeenTime = timestampFromMs(now);
    return undefined;
  },

  async beforeUpdate(ctx, { uid, message: before }, identity) {
    if (isSameRelationship(before.relationship, identity.relationship)) return undefined;
    refuse(relationshipProblems(identity.relationship, ctx.now, before.relationship));
    setDefaultExpiry(identity.relationship, ctx.now);
    await requireRolesGrantable(ctx, uid);
    return undefined;
  },

  async beforeDelete({ db }, { uid }) {
    for (const binding of await bindingsOf(db, uid)) await deleteOne(db, roleBindings, binding);
  },
});

/** Refuses a caller that could not grant all roles of the identity: a new relationship gives them to another login. */
async function requireRolesGrantable(ctx: WriteContext, uid: string): Promise<void> {
  for (const { parent, message } of await bindingsOf(ctx.db, uid)) {
    const capabilities = await capabilitiesOf(ctx.db, message.roleUid);
    requireGrantable(ctx, capabilities ?? NO_CAPABILITIES, parent);
  }
}

/** The reference by which the issuer and subject of a token find an identity. A digest, because both can be long. */
export const subjectKey = (issuer: string, subject: string): string =>
  createHash('sha256')
    .update(JSON.stringify([canonicalIssuer(issuer), subject]))
    .digest('base64url');

/** The reference of all identities with an issuer pattern. A pattern has no value to look it up by. */
const ANY_ISSUER = '*';

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
  if (iss.case !== 'issuer') return { pattern: [ANY_ISSUER] };
  if (sub.case !== 'subject') return { issuer: [canonicalIssuer(iss.value)] };
  return { subject: [subjectKey(iss.value, sub.value)] };
}

/** The identities that a token with this issuer and subject may match. Patterns and other claims are not checked. */
export async function candidateUids(db: Reader, issuer: string, subject: string): Promise<string[]> {
  const found = [
    await findReferring(db, identities, 'subject', subjectKey(issuer, subject)),
    await findReferring(db, identities, 'issuer', canonicalIssuer(issuer)),
    await findReferring(db, identities, 'pattern', ANY_ISSUER),
  ];
  return found.flat();
}
