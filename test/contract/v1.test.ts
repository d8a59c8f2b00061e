import assert from 'node:assert/strict';
import { test } from 'node:test';
import { methodTable } from '../../src/contract/method-table.ts';
import { v1Files } from '../../src/contract/v1-files.ts';
import { assertNoFactEscapes, differences } from './comparison.ts';
import { declaredByDescriptors } from './descriptors.ts';
import { declaredByFacts, readFacts } from './facts.ts';

const methods = methodTable(v1Files);

test('v1 is the facts about what we serve of it, neither more nor less', (t) => {
  const found = differences(declaredByFacts(readFacts('v1')), declaredByDescriptors(v1Files));
  assert.deepEqual(found, []);
  assert.equal(v1Files.flatMap((file) => file.services).length, 19);
  assert.equal(methods.length, 108);
  t.diagnostic(`${methods.length} methods, ${found.length} differences`);
});

test('no fact escapes the comparison', () => {
  const facts = readFacts('v1');
  for (const path of ['oidc/v1/oidc', 'auth/v1/auth', 'iam/v1/group_invites', 'iam/v1/identity_providers']) {
    const file = v1Files.find((candidate) => candidate.name === `platform/${path}.platform`);
    assert.ok(file);
    assertNoFactEscapes(facts, file);
  }
});

test('what only one large file has does not escape either: reserved ranges, and messages out of use', () => {
  const facts = readFacts('v1');
  const { messages, enums } =
    facts.domains.registry?.files['platform/registry/v1/registry.platform.proto'] ?? assert.fail();
  messages.EolTag = { ...(messages.EolTag ?? assert.fail()), reserved_numbers: ['3-5', 8, '10-11'] };
  messages.RawSbom = { ...(messages.RawSbom ?? assert.fail()), deprecated: false };
  enums.CatalogTier = { ...(enums.CatalogTier ?? assert.fail()), reserved_numbers: ['1-2'] };
  const found = differences(declaredByFacts(facts), declaredByDescriptors(v1Files)).map((line) => line.split(':')[0]);
  const names = ['EolTag', 'RawSbom', 'CatalogTier'].map((name) => `chainguard.platform.registry.${name}`);
  assert.deepEqual(new Set(found), new Set(names));
});

test('a package without a version has a domain all the same', () => {
  const domains = ['iam', 'registry', 'vulnerabilities', 'libraries', 'advisory', 'events', 'ping', 'oidc', 'auth'];
  assert.deepEqual([...new Set(methods.map(({ domain }) => domain))], domains);
});

test('one method has no route, since it never had one', () => {
  const unrouted = methods.filter(({ routes }) => routes.length === 0);
  assert.deepEqual(
    unrouted.map(({ id }) => id),
    ['chainguard.platform.iam.GroupInvites/CreateWithGroup'],
  );
});
