import {
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
} from '../../contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import {
  ExternalGroupRoleMappings,
  ExternalGroupRoleMappingSchema as V1ExternalGroupRoleMappingSchema,
} from '../../contract/gen/platform/iam/v1/external_group_role_mappings.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

const mapper = createMessageMapper(V1ExternalGroupRoleMappingSchema, ExternalGroupRoleMappingSchema, {
  renames: {
    id: 'uid',
    identity_provider_uidp: 'identity_provider_uid',
    role_uidp: 'role_uid',
    created_at: 'create_time',
  },
  onlyV2: ['update_time'],
});

const v1 = ExternalGroupRoleMappings.method;
const v2 = ExternalGroupRoleMappingsService.method;
const v1FieldNames = { parent: 'parent_id', identity_provider_uid: 'identity_provider_uidp', role_uid: 'role_uidp' };

export const externalGroupRoleMappingOperations = (operations: Operations): Operations => ({
  ...adapt(operations, v1.create, v2.createExternalGroupRoleMapping, {
    request: ({ parentId, mapping }) => ({ parent: parentId, externalGroupRoleMapping: mapper.toV2(mapping) }),
    response: mapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, v1.get, v2.getExternalGroupRoleMapping, {
    request: ({ uid }) => ({ uid }),
    response: mapper.toV1,
  }),
  ...adaptList(operations, v1.list, v2.listExternalGroupRoleMappings, {
    request: ({ uidp, identityProviderUidp }) => ({
      uidp: uidpFilterOf(uidp),
      identityProviderUid: identityProviderUidp,
    }),
    response: ({ externalGroupRoleMappings }) => externalGroupRoleMappings.map(mapper.toV1),
    v1FieldNames,
  }),
  ...adapt(operations, v1.delete, v2.deleteExternalGroupRoleMapping, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames: { uid: 'id' },
  }),
  ...adapt(operations, v1.batchDelete, v2.batchDeleteExternalGroupRoleMappings, {
    request: ({ parentId, ids }) => ({ parent: parentId, names: ids }),
    response: ({ parent, externalGroupRoleMappings }) => ({
      parentId: parent,
      items: externalGroupRoleMappings.map(mapper.toV1),
    }),
    v1FieldNames: { parent: 'parent_id', names: 'ids' },
  }),
});
