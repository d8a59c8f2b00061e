import assert from 'node:assert/strict';
import { test } from 'node:test';
import { methods } from './contract.testing.ts';
import { v2beta1Id } from './v2beta1.ts';
import { versionOf } from './version.ts';

for (const [id, version] of [
  ['chainguard.platform.iam.Groups/List', 'v1'],
  ['chainguard.platform.vulnerabilities.v1.Advisories/ListAdvisories', 'v1'],
  ['chainguard.platform.iam.v2.GroupsService/GetGroup', 'v2'],
  ['chainguard.platform.iam.v2beta1.GroupsService/GetGroup', 'v2beta1'],
  ['wharfinger.imports.v1.ImportsService/StartImport', undefined],
] as const) {
  test(`the version of ${id} is ${version}`, () => assert.equal(versionOf({ id }), version));
}

test('each method that has a name in v2beta1 is one of v2', () => {
  for (const method of methods) assert.equal(versionOf(method) === 'v2', v2beta1Id(method.id) !== undefined, method.id);
});
