import { create } from '@bufbuild/protobuf';
import { parentOf } from '../../../base/uid.ts';
import type { Group } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Identity } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  type RoleBinding,
  RoleBindingGroupSchema,
  RoleBindingIdentitySchema,
  RoleBindingRoleSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Role } from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import type { ReadContext } from '../../../resource/operation.ts';
import { findMessagesByUid } from '../../../resource/read.ts';
import { groups } from '../groups/groups.ts';
import { identities } from '../identities/identities.ts';
import { issuerAndSubject } from '../identities/relationship.ts';
import { roles } from './roles.ts';

/** Sets the current identity, group and role in each binding, with one lookup per kind for all bindings. */
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
  for (const binding of bindings) {
    const identity = identityOf.get(binding.identityUid);
    const group = groupOf.get(parentOf(binding.uid));
    const role = roleOf.get(binding.roleUid);
    if (identity) binding.identity = create(RoleBindingIdentitySchema, identitySummary(identity));
    if (group) binding.group = create(RoleBindingGroupSchema, summary(group));
    if (role) binding.role = create(RoleBindingRoleSchema, summary(role));
  }
}

const summary = ({ uid, name, description }: Identity | Group | Role) => ({ uid, name, description });

/** The fields of an identity that are visible to callers who cannot read the identity itself. */
export const identitySummary = (identity: Identity) => ({
  ...summary(identity),
  ...issuerAndSubject(identity.relationship),
  email: identity.email,
});
