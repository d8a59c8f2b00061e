import { create } from '@bufbuild/protobuf';
import { isUid, NOT_A_UID, parentOf } from '../../../base/uid.ts';
import {
  type RoleBinding,
  RoleBindingSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import { findAll, findReferring } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';

/**
 * Gives an identity a role at a group. This file imports no other kind, so that all of them can use it: the checks that
 * involve identities and roles are in role-binding-operations.ts.
 */
export const roleBindings = defineResource({
  kind: 'role binding',
  plural: 'role bindings',
  schema: RoleBindingSchema,
  parents: ['group'],
  parentFilter: 'group',
  idempotentDelete: true,
  grantsAccess: true,
  check: ({ identityUid, roleUid }) => [
    ...uidProblems('identity_uid', identityUid),
    ...uidProblems('role_uid', roleUid),
  ],
  references: { identity: (binding) => [binding.identityUid], role: (binding) => [binding.roleUid] },
  facets: {
    identity: (binding) => [binding.identityUid],
    group: (binding) => [parentOf(binding.uid)],
    role: (binding) => [binding.roleUid],
  },
  unique: (binding, parent) => [{ key: bindingKey(binding, parent), taken: DUPLICATE_BINDING }],
});

/** Unique, because with a duplicate, deleting one of the two bindings would not revoke the role. */
export const bindingKey = ({ identityUid, roleUid }: RoleBinding, group: string): string =>
  `${group} ${identityUid} ${roleUid}`;

export const DUPLICATE_BINDING = 'the identity has this role on this group already';

const uidProblems = (field: string, uid: string) => {
  if (uid === '') return [{ field, description: 'is required' }];
  return isUid(uid) ? [] : [{ field, description: NOT_A_UID }];
};

export const newBinding = (identityUid: string, roleUid: string) => create(RoleBindingSchema, { identityUid, roleUid });

/** The role bindings of an identity at all groups. */
export const bindingsOf = async (db: Reader, identityUid: string): Promise<Stored<RoleBinding>[]> =>
  findAll(db, roleBindings, await findReferring(db, roleBindings, 'identity', identityUid));
