import { GroupsService } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { Operations } from '../resource/context.ts';
import type { Resource } from '../resource/definition.ts';
import type { PageTokens } from '../resource/list/page-token.ts';
import { type Engine, standardOperations } from '../resource/operations.ts';
import { accessRequestOperations, accessRequests } from './iam/access-requests.ts';
import { accountAssociationOperations, accountAssociations } from './iam/account-associations.ts';
import { externalGroupRoleMappingOperations, externalGroupRoleMappings } from './iam/external-group-role-mappings.ts';
import { groupInviteOperations, groupInvites } from './iam/group-invites.ts';
import { groups } from './iam/groups.ts';
import { identities } from './iam/identities.ts';
import { identityLookupOperations } from './iam/identity-lookup.ts';
import { identityMetadataOperations } from './iam/identity-metadata.ts';
import {
  type IdentityProviderOptions,
  identityProviderOperations,
  identityProviders,
} from './iam/identity-providers.ts';
import { joiningOperations } from './iam/joining.ts';
import { roleBindingOperations } from './iam/role-binding-operations.ts';
import { roleBindings } from './iam/role-bindings.ts';
import { roleOperations, roles } from './iam/roles.ts';
import { scimTokenOperations } from './iam/scim-tokens.ts';
import { termsAcceptances, termsOperations } from './iam/terms.ts';
import { pingOperations } from './ping/ping.ts';
import { imageOperations } from './registry/images.ts';
import { repoOperations } from './registry/repo-operations.ts';
import { repos } from './registry/repos.ts';
import { tagOperations } from './registry/tag-operations.ts';
import { tags } from './registry/tags.ts';
import { advisories, advisoryOperations } from './vulnerabilities/advisories.ts';
import { explainOperations } from './wharfinger/explain.ts';

/** Every kind of resource there is. */
export const resources: readonly Resource[] = [
  groups,
  identities,
  roles,
  roleBindings,
  identityProviders,
  externalGroupRoleMappings,
  groupInvites,
  accountAssociations,
  termsAcceptances,
  accessRequests,
  repos,
  tags,
  advisories,
];

/** Every method that this server can do. The contract's other methods answer UNIMPLEMENTED. */
export function createOperations(tokens: PageTokens, options: IdentityProviderOptions): Operations {
  const engine: Engine = { kinds: new Map(resources.map((resource) => [resource.kind, resource])), tokens };
  return {
    ...pingOperations,
    ...standardOperations(engine, groups, GroupsService),
    ...standardOperations(engine, identities, IdentitiesService),
    ...roleOperations(engine),
    ...roleBindingOperations(engine),
    ...identityProviderOperations(engine, options),
    ...scimTokenOperations(options.publicUrl),
    ...externalGroupRoleMappingOperations(engine),
    ...groupInviteOperations(engine),
    ...accountAssociationOperations(engine),
    ...termsOperations(engine),
    ...joiningOperations,
    ...accessRequestOperations(engine),
    ...identityLookupOperations,
    ...identityMetadataOperations,
    ...repoOperations(engine),
    ...tagOperations(engine),
    ...imageOperations,
    ...advisoryOperations(engine),
    ...explainOperations,
  };
}
