import type { MessageInitShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { parentOf } from '../../base/uid.ts';
import {
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import {
  RoleBindingList_BindingSchema,
  RoleBindings,
  type RoleBinding as V1RoleBinding,
  RoleBindingSchema as V1RoleBindingSchema,
} from '../../contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import type { Operations } from '../../resource/context.ts';
import { adapt, listAll, within } from '../adapt.ts';

/** v1 writes bindings by uid, and reads them so back; only its lists show what they bind. */
const toV2 = ({ id, identity, role }: V1RoleBinding) =>
  create(RoleBindingSchema, { uid: id, identityUid: identity, roleUid: role });

const toV1 = ({ uid, identityUid, roleUid }: RoleBinding) =>
  create(V1RoleBindingSchema, { id: uid, identity: identityUid, group: parentOf(uid), role: roleUid });

function toListed({ uid, identityUid, identity, group, role, createTime }: RoleBinding) {
  const listed: MessageInitShape<typeof RoleBindingList_BindingSchema> = {
    id: uid,
    identity: identityUid,
    email: identity?.email ?? '',
    claimMatchIssuer: identity?.issuer ?? '',
    claimMatchSubject: identity?.subject ?? '',
    ...(group && { group: inWords(group) }),
    ...(role && { role: inWords(role) }),
    ...(createTime && { createdAt: createTime }),
  };
  return create(RoleBindingList_BindingSchema, listed);
}

const inWords = ({ uid, name, description }: { uid: string; name: string; description: string }) => ({
  id: uid,
  name,
  description,
});

const fields = { uid: 'id', identity_uid: 'identity', role_uid: 'role' };

export const roleBindingOperations = (operations: Operations): Operations => ({
  ...adapt(operations, RoleBindings.method.create, RoleBindingsService.method.createRoleBinding, {
    request: ({ parent, roleBinding }) => ({ parent, ...(roleBinding && { roleBinding: toV2(roleBinding) }) }),
    response: toV1,
    fields,
  }),
  ...adapt(operations, RoleBindings.method.createBatch, RoleBindingsService.method.batchCreateRoleBindings, {
    request: ({ parent, roleBindings }) => ({
      parent,
      requests: roleBindings.map((binding) => ({ parent, roleBinding: toV2(binding) })),
    }),
    response: ({ roleBindings }) => ({ roleBindings: roleBindings.map(toV1) }),
    fields: { ...fields, requests: 'role_bindings' },
    event: (facts, { roleBindings }) => ({ ...facts, subject: roleBindings.map(({ id }) => id).join(',') }),
  }),
  ...adapt(operations, RoleBindings.method.update, RoleBindingsService.method.updateRoleBinding, {
    request: (binding) => ({ roleBinding: toV2(binding), updateMask: { paths: ['identity_uid', 'role_uid'] } }),
    response: toV1,
    fields,
  }),
  ...listAll(operations, RoleBindings.method.list, RoleBindingsService.method.listRoleBindings, {
    request: ({ uidp, id }) => ({ uidp: within(uidp, id) }),
    response: ({ roleBindings }) => roleBindings.map(toListed),
  }),
  ...adapt(operations, RoleBindings.method.delete, RoleBindingsService.method.deleteRoleBinding, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
});
