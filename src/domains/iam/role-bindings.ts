import { create } from '@bufbuild/protobuf';
import { RoleBindingSchema } from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { defineResource } from '../../resource/definition.ts';

/** Gives an identity the capabilities of a role in a group and below it. */
export const roleBindings = defineResource({
  kind: 'role binding',
  plural: 'role bindings',
  schema: RoleBindingSchema,
  parents: ['group'],
  references: { identity: (binding) => [binding.identityUid], role: (binding) => [binding.roleUid] },
});

export const newBinding = (identityUid: string, roleUid: string) => create(RoleBindingSchema, { identityUid, roleUid });
