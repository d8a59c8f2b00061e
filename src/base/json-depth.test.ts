import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';

const nested = (depth: number): unknown =>
  depth === 0 ? 'x]}[{\\"' : depth % 2 ? [nested(depth - 1)] : { a: nested(depth - 1) };

test('brackets count, except in strings', () => {
  assert.ok(!isTooDeep(JSON.stringify(nested(MAX_JSON_DEPTH))));
  assert.ok(isTooDeep(JSON.stringify(nested(MAX_JSON_DEPTH + 1))));
  assert.ok(!isTooDeep(JSON.stringify('['.repeat(1000))));
  assert.ok(isTooDeep('['.repeat(1_000_000)));
});

test('a value of little depth is never too deep, whatever its strings contain', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => !isTooDeep(JSON.stringify(value))),
    { seed: 5 },
  );
});
