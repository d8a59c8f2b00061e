import { create } from '@bufbuild/protobuf';
import { parentOf, ROOT, rootOf } from '../../../base/uid.ts';
import type { Group } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { type Identity, IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  type RoleBinding,
  RoleBindingGroupSchema,
  RoleBindingIdentitySchema,
  RoleBindingRoleSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Role } from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import type { ReadContext } from '../../../resource/operation.ts';
import { findMessagesByUid } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { groups } from '../groups/groups.ts';
import { membersAmong } from '../groups/members.ts';
import { identities } from '../identities/identities.ts';
import { issuerAndSubject } from '../identities/relationship.ts';
import { roles } from './roles.ts';

/**
 * Sets the current identity, group and role in each binding, with one lookup per kind for all bindings. A person who has
 * not joined the organization is shown by uid only, registered or not.
 */
export async function hydrateBindings(
  { db }: Pick<ReadContext, 'db'>,
  bindings: readonly RoleBinding[],
): Promise<void> {
  const identityOf = await findMessagesByUid(
    db,
    identities,
    bindings.map((binding) => binding.identityUid),
  );
  const groupOf = await findMessagesByUid(
    db,
    groups,
    bindings.map((binding) => parentOf(binding.uid)),
  );
  const roleOf = await findMessagesByUid(
    db,
    roles,
    bindings.map((binding) => binding.roleUid),
  );
  const hidden = await findHidden(db, bindings);
  for (const binding of bindings) {
    const uid = binding.identityUid;
    const identity = hidden.has(binding) ? create(IdentitySchema, { uid }) : identityOf.get(uid);
    const group = groupOf.get(parentOf(binding.uid));
    const role = roleOf.get(binding.roleUid);
    if (identity) binding.identity = create(RoleBindingIdentitySchema, identitySummary(identity));
    if (group) binding.group = create(RoleBindingGroupSchema, summary(group));
    if (role) binding.role = create(RoleBindingRoleSchema, summary(role));
  }
}

/** The bindings of people who have not joined the organization of the binding. */
async function findHidden(db: Reader, bindings: readonly RoleBinding[]): Promise<ReadonlySet<RoleBinding>> {
  const ofPeople = bindings.filter(({ identityUid }) => parentOf(identityUid) === ROOT);
  if (ofPeople.length === 0) return NONE;
  const hidden = new Set<RoleBinding>();
  for (const [organization, some] of Map.groupBy(ofPeople, ({ uid }) => rootOf(uid))) {
    const people = new Set(some.map(({ identityUid }) => identityUid));
    const members = await membersAmong(db, organization, [...people]);
    for (const binding of some) if (!members.has(binding.identityUid)) hidden.add(binding);
  }
  return hidden;
}

const NONE: ReadonlySet<RoleBinding> = new Set();

const summary = ({ uid, name, description }: Identity | Group | Role) => ({ uid, name, description });

/** The fields of an identity that are visible to callers who cannot read the identity itself. */
export const identitySummary = (identity: Identity) => ({
  ...summary(identity),
  ...issuerAndSubject(identity.relationship),
  email: identity.email,
});
