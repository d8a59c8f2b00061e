import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { defineResource } from '../definition.ts';
import { facetOfList, missingParts, parsePart, partSet, partsOf } from './index-parts.ts';
import { declarationsId } from './register-declarations.ts';

const plain = { kind: 'thing', plural: 'things', schema: GroupSchema, parents: ['group'] };
const index = (parts: readonly string[]) => ({
  ...{ kind: 'thing', parts: new Set(parts), building: new Set<string>(), dropping: new Set<string>() },
  ...{ generation: 0, phase: 'complete' as const },
});

test('every declared order, facet, reference and unique key is a part', () => {
  const parts = partsOf(
    defineResource({
      ...plain,
      orders: { name: ({ name }) => name },
      facets: { color: () => [] },
      facetOrders: ['uid'],
      references: { owner: () => [] },
      unique: () => [],
    }),
  );
  assert.deepEqual(parts, [
    'scopes:descendants+children',
    ...['key:create_time', 'key:update_time', 'key:name'],
    ...['entries::create_time', 'entries::update_time', 'entries::name'],
    ...['facet:color', 'entries:color:uid'],
    ...['reference:owner', 'unique'],
  ]);
});

test('a new version of an order or facet is another part', () => {
  const first = defineResource({ ...plain, orders: { name: ({ name }) => name }, facets: { color: () => [] } });
  const second = defineResource({ ...first, schema: GroupSchema, indexVersions: { name: 2, color: 3 } });
  const missing = missingParts(second, index(partsOf(first)));
  assert.ok(missing);
  assert.ok(missing.parts.has('key:name#2'));
  assert.ok(missing.hasEntries('', 'name#2'));
  assert.ok(missing.hasFacet('color#3'));
  assert.ok(!missing.parts.has('key:create_time'));
  assert.equal(missingParts(first, index(partsOf(first))), undefined);
  assert.equal(missingParts(first, undefined), undefined);
});

test('the flags of hidden resources are part of the index', () => {
  const hidden = { include_old: () => false };
  const parts = partsOf(defineResource({ ...plain, hidden }));
  assert.ok(parts.includes('facet:#(include_old)'));
  assert.ok(!parts.includes('entries::create_time'));
  assert.deepEqual(parsePart('facet:#(include_old)'), { type: 'facet', name: '#', order: '' });
  assert.ok(partSet(parts).hasFacet('#'));
  assert.equal(facetOfList('#=include_old'), '#');
});

test('the id of the declarations does not depend on their order, and changes with each of them', () => {
  const a = defineResource(plain);
  const b = defineResource({ ...plain, kind: 'other' });
  assert.equal(declarationsId([a, b]), declarationsId([b, a]));
  const changed = defineResource({ ...plain, orders: { name: ({ name }) => name } });
  assert.notEqual(declarationsId([a, b]), declarationsId([changed, b]));
  assert.match(declarationsId([a]), /^[0-9a-f]{12}$/);
});
