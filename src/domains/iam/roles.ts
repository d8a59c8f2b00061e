import { RoleSchema } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { defineResource } from '../../resource/definition.ts';
import * as rules from '../../resource/rules.ts';

/** A named set of capabilities. Built-in roles stand at the root and are known to everybody. */
export const roles = defineResource({
  kind: 'role',
  plural: 'roles',
  schema: RoleSchema,
  parents: ['group'],
  rootIsPublic: true,
  rules: { name: rules.name(), description: rules.description },
  orders: { name: (role) => role.name },
});
