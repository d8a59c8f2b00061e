import assert from 'node:assert/strict';
import { test } from 'node:test';
import { methodTable, v2Files } from '../../src/contract/method-table.ts';
import { assertNoFactEscapes, differences } from './comparison.ts';
import { declaredByDescriptors } from './descriptors.ts';
import { type Declarations, declaredByFacts, readFacts } from './facts.ts';

/** What we have beyond the facts, because the specification asks for it; see docs/DECISIONS.md. */
const additions = [
  'iam.v2.RoleBinding.update_time',
  'iam.v2.GroupInvite.update_time',
  'iam.v2.ExternalGroupRoleMapping.update_time',
  'iam.v2.TermsAcceptance.uid',
  'iam.v2.TermsAcceptance.update_time',
  'registry.v2.Tag.create_time',
  'registry.v2.RepoReadme.create_time',
  'registry.v2.RepoReadme.update_time',
  'vulnerabilities.v2.AdvisoryEvent.update_time',
  'events.v2.Subscription.create_time',
  'events.v2.Subscription.update_time',
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

function ours(): Declarations {
  const declared = declaredByDescriptors(v2Files);
  for (const name of additions) declared.delete(name);
  return declared;
}

test('our descriptors are the facts, neither more nor less', (t) => {
  const found = differences(declaredByFacts(readFacts('v2')), ours());
  assert.deepEqual(found, []);
  assert.equal(v2Files.flatMap((file) => file.services).length, 17);
  assert.equal(methodTable(v2Files).length, 78);
  t.diagnostic(`${methodTable(v2Files).length} methods, ${found.length} differences`);
});

test('every addition exists, numbered where existing clients skip it', () => {
  const facts = declaredByFacts(readFacts('v2'));
  const contract = declaredByDescriptors(v2Files);
  for (const name of additions) {
    const field = contract.get(name) as { number: number } | undefined;
    assert.ok(field, `${name} does not exist`);
    assert.ok(field.number > 1000, `${name} has number ${field.number}`);
    assert.ok(!facts.has(name), `${name} is part of the facts`);
  }
});

test('a difference is named with both values', () => {
  const facts: Declarations = new Map([['a.B.c', { number: 1 }]]);
  const contract: Declarations = new Map([['a.B.d', { number: 1 }]]);
  assert.deepEqual(differences(facts, contract), [
    'a.B.c: the facts have { number: 1 }, we have nothing',
    'a.B.d: the facts have nothing, we have { number: 1 }',
  ]);
  contract.delete('a.B.d');
  contract.set('a.B.c', { number: 2 });
  assert.deepEqual(differences(facts, contract), ['a.B.c: the facts have { number: 1 }, we have { number: 2 }']);
});

test('no fact escapes the comparison', () => {
  for (const path of ['iam/v2/identity_providers', 'registry/v2/repos', 'events/v2/subscriptions']) {
    const file = v2Files.find((candidate) => candidate.name === `chainguard/platform/${path}`);
    assert.ok(file);
    assertNoFactEscapes(readFacts('v2'), file, additions);
  }
});
