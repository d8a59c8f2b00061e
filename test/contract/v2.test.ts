import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { assertEveryValueIsCompared, differences } from './compare-declarations.ts';
import { declarationsOfDescriptors } from './descriptors.ts';
import { type Declarations, declarationsOfRecord, readRecordedContract } from './recorded-contract.ts';

/**
 * Fields that the recorded contract does not have. The specification requires them, or v1 has them; see
 * docs/DECISIONS.md.
 */
const additions = [
  'iam.v2.RoleBinding.update_time',
  'iam.v2.GroupInvite.update_time',
  'iam.v2.ExternalGroupRoleMapping.update_time',
  'iam.v2.TermsAcceptance.uid',
  'iam.v2.TermsAcceptance.update_time',
  'registry.v2.Tag.create_time',
  'registry.v2.SyncConfig.sync_apks',
  'registry.v2.RepoReadme.create_time',
  'registry.v2.RepoReadme.update_time',
  'vulnerabilities.v2.AdvisoryEvent.update_time',
  'advisory.v2.VulnerabilityMetadata.aliases',
  'events.v2.Subscription.create_time',
  'events.v2.Subscription.update_time',
  ...['Document', 'VulnerabilityMetadata', 'ResolvedVulnsReport'].flatMap((message) => [
    `advisory.v2.${message}.uid`,
    `advisory.v2.${message}.create_time`,
    `advisory.v2.${message}.update_time`,
  ]),
  ...['ListDocuments', 'ListResolvedVulnsReports'].flatMap((method) => [
    `advisory.v2.${method}Request.page_size`,
    `advisory.v2.${method}Request.page_token`,
    `advisory.v2.${method}Request.order_by`,
    `advisory.v2.${method}Request.skip`,
    `advisory.v2.${method}Response.next_page_token`,
    `advisory.v2.${method}Response.total_count`,
    `advisory.v2.${method}Response.skipped`,
  ]),
].map((name) => `chainguard.platform.${name}`);

function declarationsWithoutAdditions(): Declarations {
  const declared = declarationsOfDescriptors(v2Files);
  for (const name of additions) declared.delete(name);
  return declared;
}

test('the v2 descriptors equal the recorded contract', (t) => {
  const differing = differences(declarationsOfRecord(readRecordedContract('v2')), declarationsWithoutAdditions());
  assert.deepEqual(differing, []);
  assert.equal(methodTable(v2Files).length, 78);
  t.diagnostic(`${methodTable(v2Files).length} methods, ${differing.length} differences`);
});

test('every addition exists and has a field number that existing clients do not use', () => {
  const recorded = declarationsOfRecord(readRecordedContract('v2'));
  const declared = declarationsOfDescriptors(v2Files);
  for (const name of additions) {
    const field = declared.get(name) as { number: number } | undefined;
    assert.ok(field, `${name} does not exist`);
    assert.ok(field.number > 1000, `${name} has number ${field.number}`);
    assert.ok(!recorded.has(name), `${name} is in the recorded contract`);
  }
});

test('a difference is reported with both values', () => {
  const recorded: Declarations = new Map([['a.B.c', { number: 1 }]]);
  const declared: Declarations = new Map([['a.B.d', { number: 1 }]]);
  assert.deepEqual(differences(recorded, declared), [
    'a.B.c: recorded { number: 1 }, declared nothing',
    'a.B.d: recorded nothing, declared { number: 1 }',
  ]);
  declared.delete('a.B.d');
  declared.set('a.B.c', { number: 2 });
  assert.deepEqual(differences(recorded, declared), ['a.B.c: recorded { number: 1 }, declared { number: 2 }']);
});

test('every recorded value is compared', () => {
  for (const path of ['iam/v2/identity_providers', 'registry/v2/repos', 'events/v2/subscriptions']) {
    const file = v2Files.find((candidate) => candidate.name === `chainguard/platform/${path}`);
    assert.ok(file);
    assertEveryValueIsCompared(readRecordedContract('v2'), file, additions);
  }
});
