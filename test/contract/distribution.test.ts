import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ociFiles } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { routeOf } from '../../src/oci/http/routes.ts';

/** A path that a route template of the contract matches. */
const examplePath = (template: string): string =>
  template
    .replace('{name=**}', 'org/group/app')
    .replace('{digest}', `sha256:${'a'.repeat(64)}`)
    .replace('{tag}', 'v1')
    .replace('{reference}', 'v1')
    .replace('{upload}', 'id');

const routeKinds: Readonly<Record<string, string>> = {
  GetVersion: 'version',
  IssueToken: 'token',
  ListRepositories: 'catalog',
  GetManifest: 'manifest',
  GetManifestByTag: 'tagged manifest',
  PutManifest: 'tagged manifest',
  DeleteManifest: 'manifest',
  DeleteManifestByTag: 'tagged manifest',
  GetBlob: 'blob',
  DeleteBlob: 'blob',
  BeginUpload: 'uploads',
  GetUpload: 'upload',
  AppendUpload: 'upload',
  FinishUpload: 'upload',
  CancelUpload: 'upload',
  ListRepositoryTags: 'tags',
  ListTagHistory: 'tag history',
  ListReferrers: 'referrers',
};

test('the registry serves the routes that the contract declares for the OCI distribution API', () => {
  const methods = methodTable(ociFiles);
  assert.deepEqual(methods.map(({ desc }) => desc.name).sort(), Object.keys(routeKinds).sort());
  for (const { desc, routes } of methods) {
    for (const { template } of routes) {
      const route = routeOf(examplePath(template));
      assert.equal(route?.kind, routeKinds[desc.name], template);
      if (route && 'name' in route) assert.equal(route.name, 'org/group/app');
    }
  }
});
