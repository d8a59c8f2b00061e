import { invalid } from '../../base/errors.ts';
import { capabilityNamed, nameOf } from '../../contract/capabilities.ts';
import type { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RoleSchema, RolesService } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { Roles, RoleSchema as V1RoleSchema } from '../../contract/gen/platform/iam/v1/role.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

/** v1 writes capabilities by their dotted names, v2 by enum values. */
export const capabilityNames = {
  toV2: (names: readonly string[]): Capability[] => names.map(numberOf),
  toV1: (capabilities: readonly Capability[]): string[] => capabilities.map(nameOf),
};

function numberOf(name: string, at: number): Capability {
  const capability = capabilityNamed(name);
  if (capability === undefined) {
    throw invalid(`capabilities[${at}]`, `${JSON.stringify(name.slice(0, 100))} is not a capability`);
  }
  return capability;
}

export const roleWords = vocabulary(V1RoleSchema, RoleSchema, {
  names: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
  values: { capabilities: capabilityNames },
});

const fields = { uid: 'id', parent: 'parent_id' };

export const roleOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Roles.method.create, RolesService.method.createRole, {
    request: ({ parentId, role }) => ({ parent: parentId, role: roleWords.toV2(role) }),
    response: roleWords.toV1,
    fields,
  }),
  ...adapt(operations, Roles.method.update, RolesService.method.updateRole, {
    request: (role) => ({ role: roleWords.toV2(role), updateMask: roleWords.replaced }),
    response: roleWords.toV1,
    fields,
  }),
  ...listAll(operations, Roles.method.list, RolesService.method.listRoles, {
    request: ({ uidp, id, name, parent }) => ({ uidp: within(uidp, id, parent), name }),
    response: ({ roles }) => roles.map(roleWords.toV1),
  }),
  ...adapt(operations, Roles.method.delete, RolesService.method.deleteRole, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
});
