import {
  AccountAssociationSchema,
  AccountAssociationsService,
} from '../../contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import {
  AccountAssociationsSchema,
  GroupAccountAssociations,
} from '../../contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

/** The uid of an association is the uid of its group. v1 calls the field `group`. */
const associationMapper = createMessageMapper(AccountAssociationsSchema, AccountAssociationSchema, {
  renames: { group: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1 = GroupAccountAssociations.method;
const v2 = AccountAssociationsService.method;
const v1FieldNames = { uid: 'group', parent: 'group' };

export const accountAssociationOperations = (operations: Operations): Operations => ({
  ...adapt(operations, v1.create, v2.createAccountAssociation, {
    request: (association) => ({ parent: association.group, accountAssociation: associationMapper.toV2(association) }),
    response: associationMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, v1.update, v2.updateAccountAssociation, {
    request: (association) => ({
      accountAssociation: associationMapper.toV2(association),
      updateMask: associationMapper.fullUpdateMask,
    }),
    response: associationMapper.toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, v1.list, v2.listAccountAssociations, {
    request: ({ group, name }) => ({ uidp: uidpFilterOf(undefined, group), name }),
    response: ({ accountAssociations }) => accountAssociations.map(associationMapper.toV1),
  }),
  ...adapt(operations, v1.delete, v2.deleteAccountAssociation, {
    request: ({ group }) => ({ uid: group }),
    v1FieldNames,
  }),
  ...adapt(operations, v1.check, v2.checkAccountAssociation, {
    // Account types and states have the same numbers in both versions.
    request: ({ group, accountType }) => ({ uid: group, providerType: accountType as number }),
    response: ({ status, reason, message }) => ({ ready: status as number, reason, message }),
    v1FieldNames: { ...v1FieldNames, provider_type: 'account_type' },
  }),
});
