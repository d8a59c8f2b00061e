// Generated from contract/ by tools/generate.ts.

import { file_chainguard_platform_advisory_v2_advisory } from "./chainguard/platform/advisory/v2/advisory_pb.js";
import { file_chainguard_platform_events_v2_subscriptions } from "./chainguard/platform/events/v2/subscriptions_pb.js";
import { file_chainguard_platform_iam_v2_account_associations } from "./chainguard/platform/iam/v2/account_associations_pb.js";
import { file_chainguard_platform_iam_v2_external_group_role_mappings } from "./chainguard/platform/iam/v2/external_group_role_mappings_pb.js";
import { file_chainguard_platform_iam_v2_group_invites } from "./chainguard/platform/iam/v2/group_invites_pb.js";
import { file_chainguard_platform_iam_v2_groups } from "./chainguard/platform/iam/v2/groups_pb.js";
import { file_chainguard_platform_iam_v2_identities } from "./chainguard/platform/iam/v2/identities_pb.js";
import { file_chainguard_platform_iam_v2_identity_providers } from "./chainguard/platform/iam/v2/identity_providers_pb.js";
import { file_chainguard_platform_iam_v2_role_bindings } from "./chainguard/platform/iam/v2/role_bindings_pb.js";
import { file_chainguard_platform_iam_v2_roles } from "./chainguard/platform/iam/v2/roles_pb.js";
import { file_chainguard_platform_iam_v2_terms } from "./chainguard/platform/iam/v2/terms_pb.js";
import { file_chainguard_platform_libraries_v2_artifacts } from "./chainguard/platform/libraries/v2/artifacts_pb.js";
import { file_chainguard_platform_ping_v2_ping } from "./chainguard/platform/ping/v2/ping_pb.js";
import { file_chainguard_platform_registry_v2_images } from "./chainguard/platform/registry/v2/images_pb.js";
import { file_chainguard_platform_registry_v2_repos } from "./chainguard/platform/registry/v2/repos_pb.js";
import { file_chainguard_platform_registry_v2_tags } from "./chainguard/platform/registry/v2/tags_pb.js";
import { file_chainguard_platform_vulnerabilities_v2_advisories } from "./chainguard/platform/vulnerabilities/v2/advisories_pb.js";
import { file_platform_advisory_v1_advisory_platform } from "./platform/advisory/v1/advisory.platform_pb.js";
import { file_platform_auth_v1_auth_platform } from "./platform/auth/v1/auth.platform_pb.js";
import { file_platform_common_v1_uidp_platform } from "./platform/common/v1/uidp.platform_pb.js";
import { file_platform_events_v1_identities_platform } from "./platform/events/v1/identities.platform_pb.js";
import { file_platform_events_v1_subscriptions_platform } from "./platform/events/v1/subscriptions.platform_pb.js";
import { file_platform_iam_v1_account_associations_platform } from "./platform/iam/v1/account_associations.platform_pb.js";
import { file_platform_iam_v1_external_group_role_mappings_platform } from "./platform/iam/v1/external_group_role_mappings.platform_pb.js";
import { file_platform_iam_v1_group_platform } from "./platform/iam/v1/group.platform_pb.js";
import { file_platform_iam_v1_group_invites_platform } from "./platform/iam/v1/group_invites.platform_pb.js";
import { file_platform_iam_v1_identity_platform } from "./platform/iam/v1/identity.platform_pb.js";
import { file_platform_iam_v1_identity_providers_platform } from "./platform/iam/v1/identity_providers.platform_pb.js";
import { file_platform_iam_v1_role_platform } from "./platform/iam/v1/role.platform_pb.js";
import { file_platform_iam_v1_role_binding_platform } from "./platform/iam/v1/role_binding.platform_pb.js";
import { file_platform_iam_v1_terms_platform } from "./platform/iam/v1/terms.platform_pb.js";
import { file_platform_libraries_v1_artifacts_libraries_platform } from "./platform/libraries/v1/artifacts.libraries.platform_pb.js";
import { file_platform_libraries_v1_aws_marketplace_subscriptions_libraries_platform } from "./platform/libraries/v1/aws_marketplace_subscriptions.libraries.platform_pb.js";
import { file_platform_libraries_v1_entitlements_libraries_platform } from "./platform/libraries/v1/entitlements.libraries.platform_pb.js";
import { file_platform_libraries_v1_malware_libraries_platform } from "./platform/libraries/v1/malware.libraries.platform_pb.js";
import { file_platform_libraries_v1_npm_packages_libraries_platform } from "./platform/libraries/v1/npm_packages.libraries.platform_pb.js";
import { file_platform_libraries_v1_policy_gates_libraries_platform } from "./platform/libraries/v1/policy_gates.libraries.platform_pb.js";
import { file_platform_libraries_v1_resolution_cache_libraries_platform } from "./platform/libraries/v1/resolution_cache.libraries.platform_pb.js";
import { file_platform_oidc_v1_oidc_platform } from "./platform/oidc/v1/oidc.platform_pb.js";
import { file_platform_ping_v1_ping_platform } from "./platform/ping/v1/ping.platform_pb.js";
import { file_platform_registry_v1_apko_platform } from "./platform/registry/v1/apko.platform_pb.js";
import { file_platform_registry_v1_charts_platform } from "./platform/registry/v1/charts.platform_pb.js";
import { file_platform_registry_v1_policy_platform } from "./platform/registry/v1/policy.platform_pb.js";
import { file_platform_registry_v1_registry_platform } from "./platform/registry/v1/registry.platform_pb.js";
import { file_platform_registry_v1_registry_entitlements_platform } from "./platform/registry/v1/registry_entitlements.platform_pb.js";
import { file_platform_registry_v1_vulnerabilities_platform } from "./platform/registry/v1/vulnerabilities.platform_pb.js";
import { file_platform_tenant_v1_sbom_platform } from "./platform/tenant/v1/sbom.platform_pb.js";
import { file_platform_tenant_v1_vuln_platform } from "./platform/tenant/v1/vuln.platform_pb.js";
import { file_platform_vulnerabilities_v1_advisory_vulnerabilities } from "./platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js";
import { file_wharfinger_access_v1_access } from "./wharfinger/access/v1/access_pb.js";
import { file_wharfinger_access_v1_access_requests } from "./wharfinger/access/v1/access_requests_pb.js";
import { file_wharfinger_events_v1_deliveries } from "./wharfinger/events/v1/deliveries_pb.js";
import { file_wharfinger_events_v1_sinks } from "./wharfinger/events/v1/sinks_pb.js";
import { file_wharfinger_iam_v1_external_group_role_mapping_updates } from "./wharfinger/iam/v1/external_group_role_mapping_updates_pb.js";
import { file_wharfinger_iam_v1_group_invite_updates } from "./wharfinger/iam/v1/group_invite_updates_pb.js";
import { file_wharfinger_iam_v1_identity_provider_states } from "./wharfinger/iam/v1/identity_provider_states_pb.js";
import { file_wharfinger_iam_v1_server_identities } from "./wharfinger/iam/v1/server_identities_pb.js";
import { file_wharfinger_iam_v1_sessions } from "./wharfinger/iam/v1/sessions_pb.js";
import { file_wharfinger_imports_v1_advisories } from "./wharfinger/imports/v1/advisories_pb.js";
import { file_wharfinger_imports_v1_libraries } from "./wharfinger/imports/v1/libraries_pb.js";
import { file_wharfinger_imports_v1_outcome } from "./wharfinger/imports/v1/outcome_pb.js";
import { file_wharfinger_imports_v1_reports } from "./wharfinger/imports/v1/reports_pb.js";
import { file_wharfinger_imports_v1_vulnerabilities } from "./wharfinger/imports/v1/vulnerabilities_pb.js";
import { file_wharfinger_libraries_v1_library_entitlements } from "./wharfinger/libraries/v1/library_entitlements_pb.js";
import { file_wharfinger_libraries_v1_library_policies } from "./wharfinger/libraries/v1/library_policies_pb.js";
import { file_wharfinger_libraries_v1_library_policy_bindings } from "./wharfinger/libraries/v1/library_policy_bindings_pb.js";
import { file_wharfinger_libraries_v1_library_policy_block_events } from "./wharfinger/libraries/v1/library_policy_block_events_pb.js";
import { file_wharfinger_libraries_v1_malware_entries } from "./wharfinger/libraries/v1/malware_entries_pb.js";
import { file_wharfinger_oci_v1_distribution } from "./wharfinger/oci/v1/distribution_pb.js";
import { file_wharfinger_registry_v1_entitlements } from "./wharfinger/registry/v1/entitlements_pb.js";
import { file_wharfinger_registry_v1_version_lifecycles } from "./wharfinger/registry/v1/version_lifecycles_pb.js";
import { file_wharfinger_reports_v1_reports } from "./wharfinger/reports/v1/reports_pb.js";

export const v2Files = [
  file_chainguard_platform_iam_v2_account_associations,
  file_chainguard_platform_iam_v2_external_group_role_mappings,
  file_chainguard_platform_iam_v2_group_invites,
  file_chainguard_platform_iam_v2_groups,
  file_chainguard_platform_iam_v2_identities,
  file_chainguard_platform_iam_v2_identity_providers,
  file_chainguard_platform_iam_v2_role_bindings,
  file_chainguard_platform_iam_v2_roles,
  file_chainguard_platform_iam_v2_terms,
  file_chainguard_platform_registry_v2_images,
  file_chainguard_platform_registry_v2_repos,
  file_chainguard_platform_registry_v2_tags,
  file_chainguard_platform_vulnerabilities_v2_advisories,
  file_chainguard_platform_libraries_v2_artifacts,
  file_chainguard_platform_advisory_v2_advisory,
  file_chainguard_platform_events_v2_subscriptions,
  file_chainguard_platform_ping_v2_ping,
];

export const v1Files = [
  file_platform_iam_v1_account_associations_platform,
  file_platform_iam_v1_external_group_role_mappings_platform,
  file_platform_iam_v1_group_platform,
  file_platform_iam_v1_group_invites_platform,
  file_platform_iam_v1_identity_platform,
  file_platform_iam_v1_identity_providers_platform,
  file_platform_iam_v1_role_platform,
  file_platform_iam_v1_role_binding_platform,
  file_platform_iam_v1_terms_platform,
  file_platform_registry_v1_apko_platform,
  file_platform_registry_v1_charts_platform,
  file_platform_registry_v1_policy_platform,
  file_platform_registry_v1_registry_platform,
  file_platform_registry_v1_registry_entitlements_platform,
  file_platform_registry_v1_vulnerabilities_platform,
  file_platform_vulnerabilities_v1_advisory_vulnerabilities,
  file_platform_libraries_v1_artifacts_libraries_platform,
  file_platform_libraries_v1_aws_marketplace_subscriptions_libraries_platform,
  file_platform_libraries_v1_entitlements_libraries_platform,
  file_platform_libraries_v1_malware_libraries_platform,
  file_platform_libraries_v1_npm_packages_libraries_platform,
  file_platform_libraries_v1_policy_gates_libraries_platform,
  file_platform_libraries_v1_resolution_cache_libraries_platform,
  file_platform_advisory_v1_advisory_platform,
  file_platform_events_v1_identities_platform,
  file_platform_events_v1_subscriptions_platform,
  file_platform_ping_v1_ping_platform,
  file_platform_auth_v1_auth_platform,
  file_platform_common_v1_uidp_platform,
  file_platform_oidc_v1_oidc_platform,
  file_platform_tenant_v1_sbom_platform,
  file_platform_tenant_v1_vuln_platform,
];

export const wharfingerFiles = [
  file_wharfinger_iam_v1_external_group_role_mapping_updates,
  file_wharfinger_iam_v1_group_invite_updates,
  file_wharfinger_iam_v1_identity_provider_states,
  file_wharfinger_iam_v1_server_identities,
  file_wharfinger_iam_v1_sessions,
  file_wharfinger_registry_v1_entitlements,
  file_wharfinger_registry_v1_version_lifecycles,
  file_wharfinger_imports_v1_vulnerabilities,
  file_wharfinger_imports_v1_libraries,
  file_wharfinger_libraries_v1_library_entitlements,
  file_wharfinger_libraries_v1_library_policies,
  file_wharfinger_libraries_v1_library_policy_bindings,
  file_wharfinger_libraries_v1_library_policy_block_events,
  file_wharfinger_libraries_v1_malware_entries,
  file_wharfinger_events_v1_deliveries,
  file_wharfinger_events_v1_sinks,
  file_wharfinger_access_v1_access,
  file_wharfinger_access_v1_access_requests,
  file_wharfinger_imports_v1_advisories,
  file_wharfinger_imports_v1_outcome,
  file_wharfinger_imports_v1_reports,
  file_wharfinger_reports_v1_reports,
];

export const ociFiles = [
  file_wharfinger_oci_v1_distribution,
];
