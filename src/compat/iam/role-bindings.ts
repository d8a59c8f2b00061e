import type { MessageInitShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { parentOf } from '../../base/uid.ts';
import {
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Role } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import {
  RoleBindingList_BindingSchema,
  RoleBindings,
  type RoleBinding as V1RoleBinding,
  RoleBindingSchema as V1RoleBindingSchema,
} from '../../contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { roles } from '../../domains/iam/roles/roles.ts';
import type { Operations } from '../../resource/operation.ts';
import { findMessagesByUid } from '../../resource/read.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { roleMapper } from './roles.ts';

/**
 * v1 requests and responses have the uids of identity and role. Only lists show the identity and the role themselves.
 */
const toV2 = ({ id, identity, role }: V1RoleBinding) =>
  create(RoleBindingSchema, { uid: id, identityUid: identity, roleUid: role });

const toV1 = ({ uid, identityUid, roleUid }: RoleBinding) =>
  create(V1RoleBindingSchema, { id: uid, identity: identityUid, group: parentOf(uid), role: roleUid });

function toListed({ uid, identityUid, identity, group, createTime }: RoleBinding, role: Role | undefined) {
  const listed: MessageInitShape<typeof RoleBindingList_BindingSchema> = {
    id: uid,
    identity: identityUid,
    email: identity?.email ?? '',
    claimMatchIssuer: identity?.issuer ?? '',
    claimMatchSubject: identity?.subject ?? '',
    ...(group && { group: { id: group.uid, name: group.name, description: group.description } }),
    ...(role && { role: roleMapper.toV1(role) }),
    ...(createTime && { createdAt: createTime }),
  };
  return create(RoleBindingList_BindingSchema, listed);
}

const v1FieldNames = { uid: 'id', identity_uid: 'identity', role_uid: 'role' };

export const roleBindingOperations = (operations: Operations): Operations => ({
  ...adapt(operations, RoleBindings.method.create, RoleBindingsService.method.createRoleBinding, {
    request: ({ parent, roleBinding }) => ({ parent, ...(roleBinding && { roleBinding: toV2(roleBinding) }) }),
    response: toV1,
    v1FieldNames,
  }),
  ...adapt(operations, RoleBindings.method.createBatch, RoleBindingsService.method.batchCreateRoleBindings, {
    request: ({ parent, roleBindings }) => ({
      parent,
      requests: roleBindings.map((binding) => ({ parent, roleBinding: toV2(binding) })),
    }),
    response: ({ roleBindings }) => ({ roleBindings: roleBindings.map(toV1) }),
    v1FieldNames: { ...v1FieldNames, requests: 'role_bindings' },
    event: (facts, { roleBindings }) => ({ ...facts, subject: roleBindings.map(({ id }) => id).join(',') }),
  }),
  ...adapt(operations, RoleBindings.method.update, RoleBindingsService.method.updateRoleBinding, {
    request: (binding) => ({ roleBinding: toV2(binding), updateMask: { paths: ['identity_uid', 'role_uid'] } }),
    response: toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, RoleBindings.method.list, RoleBindingsService.method.listRoleBindings, {
    request: ({ uidp, id }) => ({ uidp: uidpFilterOf(uidp, id) }),
    // A v2 role binding has the name of its role. v1 also shows the capabilities.
    async response({ roleBindings }, { db }) {
      const roleUids = roleBindings.map(({ roleUid }) => roleUid);
      const roleOf = await findMessagesByUid(db, roles, roleUids);
      return roleBindings.map((binding) => toListed(binding, roleOf.get(binding.roleUid)));
    },
  }),
  ...adapt(operations, RoleBindings.method.delete, RoleBindingsService.method.deleteRoleBinding, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
});
