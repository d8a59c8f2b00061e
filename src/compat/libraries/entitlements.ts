import * as v1 from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import {
  LibraryEntitlementSchema,
  LibraryEntitlementsService,
} from '../../contract/gen/wharfinger/libraries/v1/library_entitlements_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

const { createLibraryEntitlement, listLibraryEntitlements, deleteLibraryEntitlement } =
  LibraryEntitlementsService.method;
const { method } = v1.Entitlements;

const mapper = createMessageMapper(v1.EntitlementSchema, LibraryEntitlementSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

export const entitlementOperations = (operations: Operations): Operations => ({
  ...adapt(operations, method.create, createLibraryEntitlement, {
    request: ({ parentId, ecosystem, policy, source, cooldownDays }) => ({
      parent: parentId,
      libraryEntitlement: { ecosystem, policy, source, cooldownDays },
    }),
    response: mapper.toV1,
    v1FieldNames: { parent: 'parent_id' },
  }),
  ...adaptList(operations, method.list, listLibraryEntitlements, {
    request: ({ parentId, ecosystems }) => ({ uidp: uidpFilterOf(undefined, '', parentId), ecosystems }),
    response: ({ libraryEntitlements }) => libraryEntitlements.map(mapper.toV1),
    v1FieldNames: { 'uidp.children_of': 'parent_id' },
  }),
  ...adapt(operations, method.delete, deleteLibraryEntitlement, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames: { uid: 'id' },
  }),
});
