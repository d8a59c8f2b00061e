import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v1Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { assertEveryValueIsCompared, differences } from './compare-declarations.ts';
import { declarationsOfDescriptors } from './descriptors.ts';
import { declarationsOfRecord, methodIdsOf, readRecordedContract } from './recorded-contract.ts';

const methods = methodTable(v1Files);

/** The numbers of methods in the published contract. Packages without services are types that others use. */
const METHODS_BY_DOMAIN = {
  ...{ iam: 45, registry: 54, vulnerabilities: 7, libraries: 27, advisory: 3 },
  ...{ events: 5, ping: 1, auth: 4, oidc: 2, common: 0, tenant: 0 },
};

test('the v1 descriptors equal the recorded contract', (t) => {
  const recorded = readRecordedContract('v1');
  const differing = differences(declarationsOfRecord(recorded), declarationsOfDescriptors(v1Files));
  assert.deepEqual(differing, []);
  assert.deepEqual(methods.map(({ id }) => id).sort(), methodIdsOf(recorded).sort());
  t.diagnostic(`${methods.length} methods, ${differing.length} differences`);
});

test('the record of v1 is whole: it has the methods of every service of the published contract', () => {
  const counts = Object.entries(readRecordedContract('v1').domains).map(([domain, { files }]) => [
    domain,
    methodIdsOf({ domains: { [domain]: { files } } }).length,
  ]);
  assert.deepEqual(Object.fromEntries(counts), METHODS_BY_DOMAIN);
  assert.equal(methods.length, 148);
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
