import type { Operations } from '../../resource/operation.ts';
import { accountAssociationOperations } from './account-associations.ts';
import { externalGroupRoleMappingOperations } from './external-group-role-mappings.ts';
import { groupInviteOperations } from './group-invites.ts';
import { groupOperations } from './groups.ts';
import { identityOperations } from './identities.ts';
import { identityMetadataOperations } from './identity-metadata.ts';
import { identityProviderOperations } from './identity-providers.ts';
import { roleBindingOperations } from './role-bindings.ts';
import { roleOperations } from './roles.ts';
import { staticKeyIdentityOperations } from './static-key-identities.ts';
import { termsOperations } from './terms.ts';

export const iamOperations = (operations: Operations): Operations => ({
  ...groupOperations(operations),
  ...identityOperations(operations),
  ...identityMetadataOperations(operations),
  ...staticKeyIdentityOperations,
  ...roleOperations(operations),
  ...roleBindingOperations(operations),
  ...identityProviderOperations(operations),
  ...externalGroupRoleMappingOperations(operations),
  ...groupInviteOperations(operations),
  ...accountAssociationOperations(operations),
  ...termsOperations(operations),
});
