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
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

/** The uid of an association is that of its group, and v1 says so by the name of the field. */
const words = vocabulary(AccountAssociationsSchema, AccountAssociationSchema, {
  names: { group: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1 = GroupAccountAssociations.method;
const v2 = AccountAssociationsService.method;
const fields = { uid: 'group', parent: 'group' };

export const accountAssociationOperations = (operations: Operations): Operations => ({
  ...adapt(operations, v1.create, v2.createAccountAssociation, {
    request: (association) => ({ parent: association.group, accountAssociation: words.toV2(association) }),
    response: words.toV1,
    fields,
  }),
  ...adapt(operations, v1.update, v2.updateAccountAssociation, {
    request: (association) => ({ accountAssociation: words.toV2(association), updateMask: words.replaced }),
    response: words.toV1,
    fields,
  }),
  ...listAll(operations, v1.list, v2.listAccountAssociations, {
    request: ({ group, name }) => ({ uidp: within(undefined, group), name }),
    response: ({ accountAssociations }) => accountAssociations.map(words.toV1),
  }),
  ...adapt(operations, v1.delete, v2.deleteAccountAssociation, { request: ({ group }) => ({ uid: group }), fields }),
  ...adapt(operations, v1.check, v2.checkAccountAssociation, {
    // Both versions number kinds and states alike.
    request: ({ group, accountType }) => ({ uid: group, providerType: accountType as number }),
    response: ({ status, reason, message }) => ({ ready: status as number, reason, message }),
    fields: { ...fields, provider_type: 'account_type' },
  }),
});
