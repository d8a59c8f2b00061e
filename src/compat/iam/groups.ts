import { GroupSchema, GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  Groups,
  OrgKind,
  type Group as V1Group,
  GroupSchema as V1GroupSchema,
} from '../../contract/gen/platform/iam/v1/group.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

const groupMapper = createMessageMapper(V1GroupSchema, GroupSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1FieldNames = { uid: 'id' };

/** A verified organization must have a kind, so an update without one keeps it. */
const updateMaskOf = ({ verified, kind }: V1Group): { paths: string[] } => {
  const { paths } = groupMapper.fullUpdateMask;
  return { paths: verified && kind === OrgKind.UNSPECIFIED ? paths.filter((path) => path !== 'kind') : paths };
};

export const groupOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Groups.method.create, GroupsService.method.createGroup, {
    request: ({ parent, group }) => ({ parent, group: groupMapper.toV2(group) }),
    response: groupMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, Groups.method.update, GroupsService.method.updateGroup, {
    request: (group) => ({ group: groupMapper.toV2(group), updateMask: updateMaskOf(group) }),
    response: groupMapper.toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, Groups.method.list, GroupsService.method.listGroups, {
    request: ({ uidp, id, name }) => ({ uidp: uidpFilterOf(uidp, id), name }),
    response: ({ groups }) => groups.map(groupMapper.toV1),
  }),
  ...adapt(operations, Groups.method.delete, GroupsService.method.deleteGroup, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...adapt(operations, Groups.method.lookupGroup, GroupsService.method.lookupGroup, {
    request: () => ({}),
    response: ({ group }) => (group ? { group: groupMapper.toV1(group) } : {}),
  }),
  ...adapt(operations, Groups.method.requestGroupAccess, GroupsService.method.requestGroupAccess, {
    request: ({ groupId }) => ({ groupUid: groupId }),
    v1FieldNames: { group_uid: 'group_id' },
  }),
  ...adapt(operations, Groups.method.checkEligibility, GroupsService.method.checkEligibility, {
    request: () => ({}),
    response: ({ eligible }) => ({ eligible }),
  }),
});
