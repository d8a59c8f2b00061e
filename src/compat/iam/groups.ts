import { GroupSchema, GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { Groups, GroupSchema as V1GroupSchema } from '../../contract/gen/platform/iam/v1/group.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

const words = vocabulary(V1GroupSchema, GroupSchema, {
  names: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const fields = { uid: 'id' };

export const groupOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Groups.method.create, GroupsService.method.createGroup, {
    request: ({ parent, group }) => ({ parent, group: words.toV2(group) }),
    response: words.toV1,
    fields,
  }),
  ...adapt(operations, Groups.method.update, GroupsService.method.updateGroup, {
    request: (group) => ({ group: words.toV2(group), updateMask: words.replaced }),
    response: words.toV1,
    fields,
  }),
  ...listAll(operations, Groups.method.list, GroupsService.method.listGroups, {
    request: ({ uidp, id, name }) => ({ uidp: within(uidp, id), name }),
    response: ({ groups }) => groups.map(words.toV1),
  }),
  ...adapt(operations, Groups.method.delete, GroupsService.method.deleteGroup, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
  ...adapt(operations, Groups.method.lookupGroup, GroupsService.method.lookupGroup, {
    request: () => ({}),
    response: ({ group }) => (group ? { group: words.toV1(group) } : {}),
  }),
  ...adapt(operations, Groups.method.requestGroupAccess, GroupsService.method.requestGroupAccess, {
    request: ({ groupId }) => ({ groupUid: groupId }),
    fields: { group_uid: 'group_id' },
  }),
  ...adapt(operations, Groups.method.checkEligibility, GroupsService.method.checkEligibility, {
    request: () => ({}),
    response: ({ eligible }) => ({ eligible }),
  }),
});
