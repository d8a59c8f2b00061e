import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolvedIn } from './resolved.ts';
import type { Condition } from './timeline.ts';
import { merge, type Vulnerability } from './vulnerability.ts';

const vulnerability = (id: string, ...aliases: string[]): Vulnerability => ({
  id,
  names: [id, ...aliases],
  severity: 'high',
  vectors: [],
});

/** What one scanner found. */
const condition = (...ids: string[]): Condition => ({
  digest: ids.join(),
  reports: [{ scanner: 1, vulnerabilities: ids.map((id) => vulnerability(id)) }],
});

const told = (...conditions: (Condition | undefined)[]) =>
  resolvedIn(conditions).map(({ vulnerability: { id }, since }) => [id, since]);

test('what is gone for good is resolved when it went', () => {
  const [first, second] = [condition('a', 'b', 'c'), condition('b', 'd')];
  assert.deepEqual(told(first, first, second, second), [
    ['a', 2],
    ['c', 2],
  ]);
  assert.deepEqual(told(first, second, condition()), [
    ['a', 1],
    ['b', 2],
    ['c', 1],
  ]);
  // It came back, and went again.
  assert.deepEqual(told(condition('a'), condition(), condition('a'), condition()), [['a', 3]]);
  assert.deepEqual(told(condition('a'), condition(), condition('a')), []);
});

test('days without a report are passed over; without one at either end there is nothing to say', () => {
  assert.deepEqual(told(condition('a'), undefined, condition()), [['a', 2]]);
  assert.deepEqual(told(undefined, condition('a'), condition()), []);
  assert.deepEqual(told(condition('a'), condition(), undefined), []);
  assert.deepEqual(told(condition('a')), []);
  assert.deepEqual(told(), []);
});

test('merging keeps one of each, as grave as the gravest, with all names', () => {
  const light: Vulnerability = { ...vulnerability('a', 'x'), severity: 'low', vectors: ['1'] };
  const grave: Vulnerability = { ...vulnerability('a', 'y'), severity: 'critical', vectors: ['1', '2'] };
  assert.deepEqual(merge([vulnerability('b'), light, grave]), [
    { id: 'a', names: ['a', 'x', 'y'], severity: 'critical', vectors: ['1', '2'] },
    vulnerability('b'),
  ]);
});
