import type { DescService } from '@bufbuild/protobuf';
import { GroupsService } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { AdvisoriesService } from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AccessRequestsService } from '../contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { LibraryEntitlementsService } from '../contract/gen/wharfinger/libraries/v1/library_entitlements_pb.js';
import { LibraryPoliciesService } from '../contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import { LibraryPolicyBindingsService } from '../contract/gen/wharfinger/libraries/v1/library_policy_bindings_pb.js';
import { LibraryPolicyBlockEventsService } from '../contract/gen/wharfinger/libraries/v1/library_policy_block_events_pb.js';
import { MalwareEntriesService } from '../contract/gen/wharfinger/libraries/v1/malware_entries_pb.js';
import { EntitlementsService } from '../contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import { VersionLifecyclesService } from '../contract/gen/wharfinger/registry/v1/version_lifecycles_pb.js';
import type { Resource } from '../resource/definition.ts';
import { createEngine } from '../resource/engine.ts';
import type { PageTokens } from '../resource/list/page-token.ts';
import type { Operations } from '../resource/operation.ts';
import { standardOperations } from '../resource/standard-methods.ts';
import { advisories } from './advisories/advisories.ts';
import { advisoryImportOperations } from './advisories/import-advisories.ts';
import { vulnerabilityMetadataImportOperations } from './advisory-documents/import-vulnerability-metadata.ts';
import {
  type SecurityAdvisoryOptions,
  securityAdvisoryOperations,
} from './advisory-documents/security-advisory-operations.ts';
import { vulnerabilityMetadata } from './advisory-documents/vulnerability-metadata.ts';
import { deliveryOperations } from './events/deliveries.ts';
import { type SinkOptions, sinkOperations } from './events/sinks.ts';
import { type SubscriptionOptions, subscriptionOperations, subscriptions } from './events/subscriptions.ts';
import { explainOperations } from './iam/access/explain.ts';
import { accountAssociationOperations, accountAssociations } from './iam/groups/account-associations.ts';
import { groups } from './iam/groups/groups.ts';
import { termsAcceptances, termsOperations } from './iam/groups/terms.ts';
import { type IdentityOptions, identities, identityOperations } from './iam/identities/identities.ts';
import { identityLookupOperations } from './iam/identities/identity-lookup.ts';
import { identityMetadataOperations } from './iam/identities/identity-metadata.ts';
import { serverIdentityOperations } from './iam/identities/server-identities.ts';
import {
  externalGroupRoleMappingOperations,
  externalGroupRoleMappings,
} from './iam/identity-providers/external-group-role-mappings.ts';
import { identityProviderStateOperations } from './iam/identity-providers/identity-provider-states.ts';
import {
  type IdentityProviderOptions,
  identityProviderOperations,
  identityProviders,
} from './iam/identity-providers/identity-providers.ts';
import { scimTokenOperations } from './iam/identity-providers/scim-tokens.ts';
import { accessRequests } from './iam/joining/access-requests.ts';
import { groupInviteOperations, groupInvites } from './iam/joining/group-invites.ts';
import { joinGroupOperations } from './iam/joining/join-group.ts';
import { updateGroupInviteOperations } from './iam/joining/update-group-invite.ts';
import { roleBindingOperations } from './iam/roles/role-binding-operations.ts';
import { roleBindings } from './iam/roles/role-bindings.ts';
import { roleOperations, roles } from './iam/roles/roles.ts';
import { artifactOperations } from './libraries/artifact-operations.ts';
import { artifactVersions } from './libraries/artifact-versions.ts';
import { artifacts } from './libraries/artifacts.ts';
import { libraryImportOperations } from './libraries/import-libraries.ts';
import { libraryEntitlements } from './libraries/library-entitlements.ts';
import { libraryPolicies } from './libraries/library-policies.ts';
import { libraryPolicyBindings } from './libraries/library-policy-bindings.ts';
import { libraryPolicyBlockEvents } from './libraries/library-policy-block-events.ts';
import { malwareEntries } from './libraries/malware-entries.ts';
import { pingOperations } from './ping/ping.ts';
import { entitlements } from './registry/entitlements/entitlements.ts';
import { imageOperations } from './registry/images/images.ts';
import { repoOperations } from './registry/repos/repo-operations.ts';
import { repos } from './registry/repos/repos.ts';
import { tagOperations } from './registry/tags/tag-operations.ts';
import { tags } from './registry/tags/tags.ts';
import { versionLifecycles } from './registry/tags/version-lifecycles.ts';
import { reportImportOperations } from './reports/import-reports.ts';
import { reportOperations } from './reports/report-operations.ts';
import { reports } from './reports/reports.ts';
import { resolvedVulnerabilityOperations } from './reports/resolved-vulnerability-operations.ts';

/** Resources that have no operations but the standard methods of their service. */
const standardResources: readonly (readonly [Resource, DescService])[] = [
  [groups, GroupsService],
  [accessRequests, AccessRequestsService],
  [advisories, AdvisoriesService],
  [libraryPolicies, LibraryPoliciesService],
  [libraryPolicyBindings, LibraryPolicyBindingsService],
  [libraryPolicyBlockEvents, LibraryPolicyBlockEventsService],
  [libraryEntitlements, LibraryEntitlementsService],
  [malwareEntries, MalwareEntriesService],
  [versionLifecycles, VersionLifecyclesService],
  [entitlements, EntitlementsService],
];

/** The declarations of all resources. */
export const resources: readonly Resource[] = [
  ...standardResources.map(([resource]) => resource),
  identities,
  roles,
  roleBindings,
  identityProviders,
  externalGroupRoleMappings,
  groupInvites,
  accountAssociations,
  termsAcceptances,
  repos,
  tags,
  reports,
  subscriptions,
  artifacts,
  artifactVersions,
  vulnerabilityMetadata,
];

/** The operations of all methods that this server implements. Other methods of the contract return UNIMPLEMENTED. */
export function createOperations(
  pageTokens: PageTokens,
  options: IdentityOptions & IdentityProviderOptions & SubscriptionOptions & SinkOptions & SecurityAdvisoryOptions,
): Operations {
  const engine = createEngine(resources, pageTokens);
  const standard = standardResources.map(([resource, service]) => standardOperations(engine, resource, service));
  return {
    ...Object.assign({}, ...standard),
    ...pingOperations,
    ...identityOperations(engine, options),
    ...roleOperations(engine),
    ...roleBindingOperations(engine),
    ...identityProviderOperations(engine, options),
    ...scimTokenOperations(options.publicUrl),
    ...externalGroupRoleMappingOperations(engine),
    ...groupInviteOperations(engine),
    ...updateGroupInviteOperations(engine),
    ...accountAssociationOperations(engine),
    ...termsOperations(engine),
    ...joinGroupOperations,
    ...identityLookupOperations,
    ...identityMetadataOperations,
    ...serverIdentityOperations(engine),
    ...identityProviderStateOperations,
    ...repoOperations(engine),
    ...tagOperations(engine),
    ...imageOperations,
    ...reportOperations(engine),
    ...reportImportOperations,
    ...resolvedVulnerabilityOperations(pageTokens),
    ...artifactOperations(engine),
    ...libraryImportOperations,
    ...advisoryImportOperations,
    ...vulnerabilityMetadataImportOperations,
    ...securityAdvisoryOperations(engine, options),
    ...subscriptionOperations(engine, options),
    ...sinkOperations(options),
    ...deliveryOperations(pageTokens),
    ...explainOperations,
  };
}
