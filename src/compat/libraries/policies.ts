import * as v1 from '../../contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import {
  LibraryPoliciesService,
  LibraryPolicySchema,
} from '../../contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import {
  LibraryPolicyBindingSchema,
  LibraryPolicyBindingsService,
} from '../../contract/gen/wharfinger/libraries/v1/library_policy_bindings_pb.js';
import {
  LibraryPolicyBlockEventSchema,
  LibraryPolicyBlockEventsService,
} from '../../contract/gen/wharfinger/libraries/v1/library_policy_block_events_pb.js';
import { purlTypeOf } from '../../domains/libraries/ecosystems.ts';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

const times = { created_at: 'create_time', updated_at: 'update_time' };
const v1FieldNames = { parent: 'parent_id', 'uidp.children_of': 'parent_id', policy_uid: 'policy', uid: 'id' };

const policyMapper = createMessageMapper(v1.LibraryPolicySchema, LibraryPolicySchema, {
  renames: { id: 'uid', ...times },
  // Policies of this server are lists and not expressions.
  onlyV1: ['expression'],
});
const bindingMapper = createMessageMapper(v1.LibraryPolicyBindingSchema, LibraryPolicyBindingSchema, {
  renames: { id: 'uid', policy: 'policy_uid', ...times },
});
const blockEventMapper = createMessageMapper(v1.LibraryPolicyBlockEventSchema, LibraryPolicyBlockEventSchema, {
  renames: {
    ...{ id: 'uid', policy: 'policy_uid', publish_date: 'publish_time', unblocks_at: 'unblock_time' },
    ...{ first_blocked_at: 'create_time', last_blocked_at: 'update_time' },
  },
  onlyV2: ['package_name'],
  converters: { ecosystem: { toV2: () => 0, toV1: purlTypeOf } },
});

const policies = v1.LibraryPolicies.method;
const bindings = v1.LibraryPolicyBindings.method;
const { createLibraryPolicy, updateLibraryPolicy, listLibraryPolicies, deleteLibraryPolicy } =
  LibraryPoliciesService.method;
const {
  createLibraryPolicyBinding,
  updateLibraryPolicyBinding,
  listLibraryPolicyBindings,
  deleteLibraryPolicyBinding,
} = LibraryPolicyBindingsService.method;

/** The fields of a page that both versions have. */
const pageOf = ({ nextPageToken, totalCount = 0n, skipped }: PageFields) => ({ nextPageToken, totalCount, skipped });

interface PageFields {
  readonly nextPageToken: string;
  readonly totalCount?: bigint | undefined;
  readonly skipped: number;
}

export const policyOperations = (operations: Operations): Operations => ({
  ...adapt(operations, policies.createPolicy, createLibraryPolicy, {
    request: ({ parentId, policy }) => ({ parent: parentId, libraryPolicy: policyMapper.toV2(policy) }),
    response: policyMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, policies.updatePolicy, updateLibraryPolicy, {
    request: (policy) => ({ libraryPolicy: policyMapper.toV2(policy), updateMask: policyMapper.fullUpdateMask }),
    response: policyMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, policies.listPolicies, listLibraryPolicies, {
    request: ({ parentId, name, policyType, pageSize, pageToken }) => ({
      uidp: uidpFilterOf(undefined, '', parentId),
      ...{ name, policyType, pageSize, pageToken },
    }),
    response: ({ libraryPolicies, ...page }) => ({ items: libraryPolicies.map(policyMapper.toV1), ...pageOf(page) }),
    v1FieldNames,
  }),
  ...adapt(operations, policies.deletePolicy, deleteLibraryPolicy, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...adapt(operations, bindings.createBinding, createLibraryPolicyBinding, {
    request: ({ parentId, binding }) => ({ parent: parentId, libraryPolicyBinding: bindingMapper.toV2(binding) }),
    response: bindingMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, bindings.updateBinding, updateLibraryPolicyBinding, {
    request: (binding) => ({
      libraryPolicyBinding: bindingMapper.toV2(binding),
      updateMask: bindingMapper.fullUpdateMask,
    }),
    response: bindingMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, bindings.listBindings, listLibraryPolicyBindings, {
    request: ({ parentId, ecosystem, mode, pageSize, pageToken }) => ({
      uidp: uidpFilterOf(undefined, '', parentId),
      ...{ ecosystem, mode, pageSize, pageToken },
    }),
    response: ({ libraryPolicyBindings, ...page }) => ({
      items: libraryPolicyBindings.map(bindingMapper.toV1),
      ...pageOf(page),
    }),
    v1FieldNames,
  }),
  ...adapt(operations, bindings.deleteBinding, deleteLibraryPolicyBinding, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...adapt(
    operations,
    v1.LibraryPolicyBlockEvents.method.listBlockEvents,
    LibraryPolicyBlockEventsService.method.listLibraryPolicyBlockEvents,
    {
      request: ({ parentId, ecosystem, packageName, mode, since, pageSize, pageToken }) => ({
        uidp: uidpFilterOf(undefined, '', parentId),
        ...{ ecosystem, packageName, mode, pageSize, pageToken },
        ...(since && { since }),
      }),
      response: ({ libraryPolicyBlockEvents, ...page }) => ({
        items: libraryPolicyBlockEvents.map(blockEventMapper.toV1),
        ...pageOf(page),
      }),
      v1FieldNames,
    },
  ),
});
