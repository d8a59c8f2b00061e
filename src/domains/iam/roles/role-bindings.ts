import { create } from '@bufbuild/protobuf';
import { isUid, parentOf } from '../../../base/uid.ts';
import {
  type RoleBinding,
  RoleBindingSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import { findAll, findReferring } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';

/**
 * Gives an identity the capabilities of a role in a group and below it. What a binding is and how it is found; who may
 * make one of what is in role-binding-operations.ts, which knows the other kinds too.
 */
export const roleBindings = defineResource({
  kind: 'role binding',
  plural: 'role bindings',
  schema: RoleBindingSchema,
  parents: ['group'],
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
  unique: (binding, parent) => [{ key: bindingKey(binding, parent), taken: TAKEN }],
});

/** A second one would change nothing, and outlive the first when that is deleted to take the role away. */
export const bindingKey = ({ identityUid, roleUid }: RoleBinding, group: string): string =>
  `${group} ${identityUid} ${roleUid}`;

export const TAKEN = 'the identity has this role on this group already';

const uidProblems = (field: string, uid: string) => {
  if (uid === '') return [{ field, description: 'is required' }];
  return isUid(uid) ? [] : [{ field, description: 'must be a uid: 40 hex digits, then /-separated parts of 16' }];
};

export const newBinding = (identityUid: string, roleUid: string) => create(RoleBindingSchema, { identityUid, roleUid });

/** The bindings of an identity, wherever in the tree they are. */
export const bindingsOf = async (db: Reader, identityUid: string): Promise<Stored[]> =>
  findAll(db, roleBindings, await findReferring(db, roleBindings, 'identity', identityUid));
