import { invalid } from '../../base/errors.ts';
import { capabilityByName, capabilityName } from '../../contract/capabilities.ts';
import type { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RoleSchema, RolesService } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { Roles, RoleSchema as V1RoleSchema } from '../../contract/gen/platform/iam/v1/role.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

/** v1 has capabilities as names such as `groups.create`, v2 as enum values. */
export const capabilityConverter = {
  toV2: (names: readonly string[]): Capability[] => names.map(requireCapability),
  toV1: (capabilities: readonly Capability[]): string[] => capabilities.map(capabilityName),
};

function requireCapability(name: string, index: number): Capability {
  const capability = capabilityByName(name);
  if (capability === undefined) {
    throw invalid(`capabilities[${index}]`, `${JSON.stringify(name.slice(0, 100))} is not a capability`);
  }
  return capability;
}

export const roleMapper = createMessageMapper(V1RoleSchema, RoleSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
  converters: { capabilities: capabilityConverter },
});

const v1FieldNames = { uid: 'id', parent: 'parent_id' };

export const roleOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Roles.method.create, RolesService.method.createRole, {
    request: ({ parentId, role }) => ({ parent: parentId, role: roleMapper.toV2(role) }),
    response: roleMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, Roles.method.update, RolesService.method.updateRole, {
    request: (role) => ({ role: roleMapper.toV2(role), updateMask: roleMapper.fullUpdateMask }),
    response: roleMapper.toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, Roles.method.list, RolesService.method.listRoles, {
    request: ({ uidp, id, name, parent }) => ({ uidp: uidpFilterOf(uidp, id, parent), name }),
    response: ({ roles }) => roles.map(roleMapper.toV1),
  }),
  ...adapt(operations, Roles.method.delete, RolesService.method.deleteRole, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
});
