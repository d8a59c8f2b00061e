import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v1Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { assertEveryValueIsCompared, differences } from './compare-declarations.ts';
import { declarationsOfDescriptors } from './descriptors.ts';
import { declarationsOfRecord, readRecordedContract } from './recorded-contract.ts';

const methods = methodTable(v1Files);

test('the v1 descriptors equal the recorded contract of the methods that the server implements', (t) => {
  const differing = differences(declarationsOfRecord(readRecordedContract('v1')), declarationsOfDescriptors(v1Files));
  assert.deepEqual(differing, []);
  assert.equal(v1Files.flatMap((file) => file.services).length, 19);
  assert.equal(methods.length, 108);
  t.diagnostic(`${methods.length} methods, ${differing.length} differences`);
});

test('every recorded value is compared', () => {
  const contract = readRecordedContract('v1');
  for (const path of ['oidc/v1/oidc', 'auth/v1/auth', 'iam/v1/group_invites', 'iam/v1/identity_providers']) {
    const file = v1Files.find((candidate) => candidate.name === `platform/${path}.platform`);
    assert.ok(file);
    assertEveryValueIsCompared(contract, file);
  }
});

test('reserved ranges and deprecated messages, which only one large file has, are compared', () => {
  const contract = readRecordedContract('v1');
  const { messages, enums } =
    contract.domains.registry?.files['platform/registry/v1/registry.platform.proto'] ?? assert.fail();
  messages.EolTag = { ...(messages.EolTag ?? assert.fail()), reserved_numbers: ['3-5', 8, '10-11'] };
  messages.RawSbom = { ...(messages.RawSbom ?? assert.fail()), deprecated: false };
  enums.CatalogTier = { ...(enums.CatalogTier ?? assert.fail()), reserved_numbers: ['1-2'] };
  const found = differences(declarationsOfRecord(contract), declarationsOfDescriptors(v1Files)).map(
    (line) => line.split(':')[0],
  );
  const names = ['EolTag', 'RawSbom', 'CatalogTier'].map((name) => `chainguard.platform.registry.${name}`);
  assert.deepEqual(new Set(found), new Set(names));
});

test('methods of packages without a version have a domain', () => {
  const domains = ['iam', 'registry', 'vulnerabilities', 'libraries', 'advisory', 'events', 'ping', 'oidc', 'auth'];
  assert.deepEqual(new Set(methods.map(({ domain }) => domain)), new Set(domains));
});

test('one method has no route, as in the recorded contract', () => {
  const unrouted = methods.filter(({ routes }) => routes.length === 0);
  assert.deepEqual(
    unrouted.map(({ id }) => id),
    ['chainguard.platform.iam.GroupInvites/CreateWithGroup'],
  );
});
