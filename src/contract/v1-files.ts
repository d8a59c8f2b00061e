import type { DescFile } from '@bufbuild/protobuf';
import { file_platform_advisory_v1_advisory_platform } from './gen/platform/advisory/v1/advisory.platform_pb.js';
import { file_platform_auth_v1_auth_platform } from './gen/platform/auth/v1/auth.platform_pb.js';
import { file_platform_common_v1_uidp_platform } from './gen/platform/common/v1/uidp.platform_pb.js';
import { file_platform_events_v1_identities_platform } from './gen/platform/events/v1/identities.platform_pb.js';
import { file_platform_events_v1_subscriptions_platform } from './gen/platform/events/v1/subscriptions.platform_pb.js';
import { file_platform_iam_v1_account_associations_platform } from './gen/platform/iam/v1/account_associations.platform_pb.js';
import { file_platform_iam_v1_external_group_role_mappings_platform } from './gen/platform/iam/v1/external_group_role_mappings.platform_pb.js';
import { file_platform_iam_v1_group_platform } from './gen/platform/iam/v1/group.platform_pb.js';
import { file_platform_iam_v1_group_invites_platform } from './gen/platform/iam/v1/group_invites.platform_pb.js';
import { file_platform_iam_v1_identity_platform } from './gen/platform/iam/v1/identity.platform_pb.js';
import { file_platform_iam_v1_identity_providers_platform } from './gen/platform/iam/v1/identity_providers.platform_pb.js';
import { file_platform_iam_v1_role_platform } from './gen/platform/iam/v1/role.platform_pb.js';
import { file_platform_iam_v1_role_binding_platform } from './gen/platform/iam/v1/role_binding.platform_pb.js';
import { file_platform_iam_v1_terms_platform } from './gen/platform/iam/v1/terms.platform_pb.js';
import { file_platform_libraries_v1_artifacts_libraries_platform } from './gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import { file_platform_libraries_v1_entitlements_libraries_platform } from './gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { file_platform_oidc_v1_oidc_platform } from './gen/platform/oidc/v1/oidc.platform_pb.js';
import { file_platform_ping_v1_ping_platform } from './gen/platform/ping/v1/ping.platform_pb.js';
import { file_platform_registry_v1_apko_platform } from './gen/platform/registry/v1/apko.platform_pb.js';
import { file_platform_registry_v1_registry_platform } from './gen/platform/registry/v1/registry.platform_pb.js';
import { file_platform_registry_v1_vulnerabilities_platform } from './gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import { file_platform_tenant_v1_sbom_platform } from './gen/platform/tenant/v1/sbom.platform_pb.js';
import { file_platform_tenant_v1_vuln_platform } from './gen/platform/tenant/v1/vuln.platform_pb.js';
import { file_platform_vulnerabilities_v1_advisory_vulnerabilities } from './gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';

/** The files of v1 that declare services. */
const serviceFiles: readonly DescFile[] = [
  file_platform_iam_v1_group_platform,
  file_platform_iam_v1_identity_platform,
  file_platform_iam_v1_role_platform,
  file_platform_iam_v1_role_binding_platform,
  file_platform_iam_v1_identity_providers_platform,
  file_platform_iam_v1_external_group_role_mappings_platform,
  file_platform_iam_v1_group_invites_platform,
  file_platform_iam_v1_account_associations_platform,
  file_platform_iam_v1_terms_platform,
  file_platform_registry_v1_registry_platform,
  file_platform_registry_v1_vulnerabilities_platform,
  file_platform_vulnerabilities_v1_advisory_vulnerabilities,
  file_platform_libraries_v1_artifacts_libraries_platform,
  file_platform_advisory_v1_advisory_platform,
  file_platform_events_v1_subscriptions_platform,
  file_platform_events_v1_identities_platform,
  file_platform_ping_v1_ping_platform,
  file_platform_oidc_v1_oidc_platform,
  file_platform_auth_v1_auth_platform,
];

/** The files of v1 that declare only messages. */
const messageFiles: readonly DescFile[] = [
  file_platform_common_v1_uidp_platform,
  file_platform_tenant_v1_sbom_platform,
  file_platform_tenant_v1_vuln_platform,
  file_platform_registry_v1_apko_platform,
  file_platform_libraries_v1_entitlements_libraries_platform,
];

export const v1Files: readonly DescFile[] = [...serviceFiles, ...messageFiles];
