import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ociFiles } from '../../src/contract/gen/files.js';
import { files, methodTable } from '../../src/contract/method-table.ts';

/**
 * The methods whose access is not checked by the pipeline at one scope and which are not Lists. Their operations check it,
 * and the contract says what. Before adding a method here, see whether the contract can name its scope.
 */
const methods = [
  'chainguard.platform.auth.Auth/Delete',
  'chainguard.platform.auth.Auth/Validate',
  'chainguard.platform.events.Identities/Create',
  'chainguard.platform.events.Identities/UpdateMetadata',
  'chainguard.platform.iam.GroupInvites/CreateWithGroup',
  'chainguard.platform.iam.Groups/CheckEligibility',
  'chainguard.platform.iam.Groups/Create',
  'chainguard.platform.iam.Groups/LookupGroup',
  'chainguard.platform.iam.Groups/RequestGroupAccess',
  'chainguard.platform.iam.Identities/Lookup',
  'chainguard.platform.iam.v2.GroupsService/CheckEligibility',
  'chainguard.platform.iam.v2.GroupsService/CreateGroup',
  'chainguard.platform.iam.v2.GroupsService/LookupGroup',
  'chainguard.platform.iam.v2.GroupsService/RequestGroupAccess',
  'chainguard.platform.iam.v2.IdentitiesService/LookupIdentity',
  'chainguard.platform.iam.v2.IdentitiesService/UpdateIdentityMetadata',
  'chainguard.platform.iam.v2.RolesService/GetRole',
  'chainguard.platform.libraries.Artifacts/GetArtifactCount',
  'chainguard.platform.libraries.v2.ArtifactsService/GetArtifactCount',
  'chainguard.platform.registry.Charts/FindChart',
  'chainguard.platform.registry.Entitlements/AddEntitlementImages',
  'chainguard.platform.registry.Entitlements/RemoveEntitlementImages',
  'chainguard.platform.registry.Entitlements/SwapEntitlementImages',
  'chainguard.platform.registry.Registry/GetBuildStatus',
  'chainguard.platform.registry.Registry/GetPackageVersionMetadata',
  'chainguard.platform.registry.Vulnerabilities/GetRawVulnReport',
  'wharfinger.access.v1.AccessService/Explain',
  'wharfinger.iam.v1.SessionsService/DeleteSession',
  'wharfinger.iam.v1.SessionsService/EndSessions',
  'wharfinger.iam.v1.SessionsService/ListSessions',
];

test('the methods that authorize in their operation are known, and say what they check', () => {
  const declared = methodTable(files).filter(({ handlerCheck }) => handlerCheck !== undefined);
  assert.deepEqual(declared.map(({ id }) => id).sort(), methods);
});

test('every method of the OCI distribution API says what it checks: it names a repository and no uid', () => {
  for (const { id, access, handlerCheck } of methodTable(ociFiles)) {
    assert.equal(access, 'unscoped', id);
    assert.ok(handlerCheck, id);
  }
});
