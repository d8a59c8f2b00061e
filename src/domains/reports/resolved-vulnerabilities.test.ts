import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findResolved } from './resolved-vulnerabilities.ts';
import type { TagSnapshot } from './timeline.ts';
import { mergeVulnerabilities, type Vulnerability } from './vulnerability.ts';

const vulnerability = (id: string, ...aliases: string[]): Vulnerability => ({
  id,
  names: [id, ...aliases],
  severity: 'high',
  vectors: [],
});

/** A snapshot with the report of one scanner. */
const snapshot = (...ids: string[]): TagSnapshot => ({
  digest: ids.join(),
  reports: [{ scanner: 1, vulnerabilities: ids.map((id) => vulnerability(id)) }],
});

const resolved = async (...snapshots: (TagSnapshot | undefined)[]) =>
  (await findResolved(snapshots)).map(({ vulnerability: { id }, since }) => [id, since]);

test('a vulnerability is resolved from the first snapshot on that no longer has it', async () => {
  const [first, second] = [snapshot('a', 'b', 'c'), snapshot('b', 'd')];
  assert.deepEqual(await resolved(first, first, second, second), [
    ['a', 2],
    ['c', 2],
  ]);
  assert.deepEqual(await resolved(first, second, snapshot()), [
    ['a', 1],
    ['b', 2],
    ['c', 1],
  ]);
  // It reappears and disappears again.
  assert.deepEqual(await resolved(snapshot('a'), snapshot(), snapshot('a'), snapshot()), [['a', 3]]);
  assert.deepEqual(await resolved(snapshot('a'), snapshot(), snapshot('a')), []);
});

test('missing snapshots are skipped; without the first or the last nothing is resolved', async () => {
  assert.deepEqual(await resolved(snapshot('a'), undefined, snapshot()), [['a', 2]]);
  assert.deepEqual(await resolved(undefined, snapshot('a'), snapshot()), []);
  assert.deepEqual(await resolved(snapshot('a'), snapshot(), undefined), []);
  assert.deepEqual(await resolved(snapshot('a')), []);
  assert.deepEqual(await resolved(), []);
});

test('merging keeps one vulnerability per id, with the highest severity and all names', () => {
  const low: Vulnerability = { ...vulnerability('a', 'x'), severity: 'low', vectors: ['1'] };
  const critical: Vulnerability = { ...vulnerability('a', 'y'), severity: 'critical', vectors: ['1', '2'] };
  assert.deepEqual(mergeVulnerabilities([vulnerability('b'), low, critical]), [
    { id: 'a', names: ['a', 'x', 'y'], severity: 'critical', vectors: ['1', '2'] },
    vulnerability('b'),
  ]);
});
