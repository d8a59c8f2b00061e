import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect, isDeepStrictEqual } from 'node:util';
import { files, methodTable, services } from '../../src/contract/methods.ts';
import { declaredByDescriptors } from './descriptors.ts';
import { type Declarations, declaredByFacts, type Facts, readFacts } from './facts.ts';

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

/** One line for each declaration that is not the same on both sides. */
function differences(facts: Declarations, contract: Declarations): string[] {
  const show = (value: unknown) => (value ? inspect(value, { breakLength: Infinity, depth: null }) : 'nothing');
  return [...new Set([...facts.keys(), ...contract.keys()])]
    .filter((name) => !isDeepStrictEqual(facts.get(name), contract.get(name)))
    .map((name) => `${name}: the facts have ${show(facts.get(name))}, we have ${show(contract.get(name))}`);
}

function ours(): Declarations {
  const declared = declaredByDescriptors(files);
  for (const name of additions) declared.delete(name);
  return declared;
}

test('our descriptors are the facts, neither more nor less', (t) => {
  const found = differences(declaredByFacts(readFacts()), ours());
  assert.deepEqual(found, []);
  assert.equal(services.length, 17);
  assert.equal(methodTable(files).length, 78);
  t.diagnostic(`${methodTable(files).length} methods, ${found.length} differences`);
});

test('every addition exists, numbered where existing clients skip it', () => {
  const facts = declaredByFacts(readFacts());
  const contract = declaredByDescriptors(files);
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
  const contract = ours();
  for (const path of ['iam/v2/identity_providers', 'registry/v2/repos', 'events/v2/subscriptions']) {
    const file = files.filter((candidate) => candidate.name === `chainguard/platform/${path}`);
    const contractOfFile = new Map([...declaredByDescriptors(file)].filter(([name]) => contract.has(name)));
    const facts = onlyFile(readFacts(), `chainguard/platform/${path}.proto`);
    assert.deepEqual(differences(declaredByFacts(facts), contractOfFile), []);
    for (const { holder, key, name } of leavesOf(facts)) {
      const value = holder[key];
      holder[key] = changed(value);
      assert.notDeepEqual(differences(declaredByFacts(facts), contractOfFile), [], `${name} is not compared`);
      holder[key] = value;
    }
  }
});

function onlyFile(facts: Facts, path: string): Facts {
  const file = Object.values(facts.domains).find(({ files }) => files[path])?.files[path];
  assert.ok(file);
  return { domains: { only: { files: { [path]: file } } } };
}

interface Leaf {
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly name: string;
}

/** Not compared: hints for other tools, and `iam_mode`, which `iam_disabled` repeats. */
const notCompared = ['mcp', 'syntax', 'go_package', 'iam_mode'];

function* leavesOf(node: object, name = ''): Generator<Leaf> {
  const holder = node as Record<string, unknown>;
  for (const [key, value] of Object.entries(holder)) {
    if (notCompared.includes(key)) continue;
    if (typeof value === 'object' && value !== null) yield* leavesOf(value, `${name}.${key}`);
    else yield { holder, key, name: `${name}.${key}` };
  }
}

function changed(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  return `${value}, but not quite`;
}
