import { create } from '@bufbuild/protobuf';
import {
  GroupInviteSchema,
  GroupInvitesService,
} from '../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import {
  type GroupInviteRequest,
  GroupInvites,
  StoredGroupInviteSchema,
  GroupInviteSchema as V1GroupInviteSchema,
} from '../../contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { createOrganizationWithInvite } from '../../domains/iam/joining/create-organization-with-invite.ts';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';
import { v1WriteOperation } from '../v1-write-operation.ts';
import { capabilityConverter } from './roles.ts';

/** v1 has two messages for an invite: one with the code, for its creation, and one for lists. v2 has one message. */
const renames = { id: 'uid', expiration: 'expiration_time', created_at: 'create_time' };
const converters = { capabilities: capabilityConverter };

const newInviteMapper = createMessageMapper(V1GroupInviteSchema, GroupInviteSchema, {
  renames,
  converters,
  onlyV2: ['role_uid', 'email', 'ttl', 'single_use', 'create_time', 'update_time'],
});

const storedInviteMapper = createMessageMapper(StoredGroupInviteSchema, GroupInviteSchema, {
  renames,
  converters,
  onlyV2: ['role_uid', 'ttl', 'code', 'update_time'],
});

const toV2Invite = ({ ttl, role, email, singleUse }: GroupInviteRequest) =>
  create(GroupInviteSchema, { roleUid: role, email, singleUse, ...(ttl && { ttl }) });

const v1FieldNames = { uid: 'id', parent: 'group', role_uid: 'role' };

export const groupInviteOperations = (operations: Operations): Operations => ({
  ...adapt(operations, GroupInvites.method.create, GroupInvitesService.method.createGroupInvite, {
    request: (request) => ({ parent: request.group, groupInvite: toV2Invite(request) }),
    response: newInviteMapper.toV1,
    v1FieldNames,
  }),
  // The request has no parent for the new group, so the group is an organization.
  ...v1WriteOperation(GroupInvites.method.createWithGroup, { ...v1FieldNames, name: 'group' }, async (ctx, request) =>
    newInviteMapper.toV1(await createOrganizationWithInvite(ctx, request.group, toV2Invite(request))),
  ),
  ...adaptList(operations, GroupInvites.method.list, GroupInvitesService.method.listGroupInvites, {
    request: ({ group, id, keyId }) => ({ uidp: uidpFilterOf(undefined, id, group), keyId }),
    response: ({ groupInvites }) => groupInvites.map(storedInviteMapper.toV1),
  }),
  ...adapt(operations, GroupInvites.method.delete, GroupInvitesService.method.deleteGroupInvite, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
});
