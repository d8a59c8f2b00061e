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
import { foundAndInvite } from '../../domains/iam/joining/create-organization-with-invite.ts';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';
import { writeOnly } from '../v1-only.ts';
import { capabilityNames } from './roles.ts';

/** What v2 has in one message, v1 has in two: the invite with its code, and the invite as it is listed. */
const names = { id: 'uid', expiration: 'expiration_time', created_at: 'create_time' };
const values = { capabilities: capabilityNames };

const fresh = vocabulary(V1GroupInviteSchema, GroupInviteSchema, {
  names,
  values,
  onlyV2: ['role_uid', 'email', 'ttl', 'single_use', 'create_time', 'update_time'],
});

const stored = vocabulary(StoredGroupInviteSchema, GroupInviteSchema, {
  names,
  values,
  onlyV2: ['role_uid', 'ttl', 'code', 'update_time'],
});

const inviteIn = ({ ttl, role, email, singleUse }: GroupInviteRequest) =>
  create(GroupInviteSchema, { roleUid: role, email, singleUse, ...(ttl && { ttl }) });

const fields = { uid: 'id', parent: 'group', role_uid: 'role' };

export const groupInviteOperations = (operations: Operations): Operations => ({
  ...adapt(operations, GroupInvites.method.create, GroupInvitesService.method.createGroupInvite, {
    request: (asked) => ({ parent: asked.group, groupInvite: inviteIn(asked) }),
    response: fresh.toV1,
    fields,
  }),
  // Without a parent to put a group into, the new group is an organization.
  ...writeOnly(GroupInvites.method.createWithGroup, { ...fields, name: 'group' }, async (ctx, asked) =>
    fresh.toV1(await foundAndInvite(ctx, asked.group, inviteIn(asked))),
  ),
  ...listAll(operations, GroupInvites.method.list, GroupInvitesService.method.listGroupInvites, {
    request: ({ group, id, keyId }) => ({ uidp: within(undefined, id, group), keyId }),
    response: ({ groupInvites }) => groupInvites.map(stored.toV1),
  }),
  ...adapt(operations, GroupInvites.method.delete, GroupInvitesService.method.deleteGroupInvite, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
});
