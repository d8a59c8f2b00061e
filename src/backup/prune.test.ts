import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FoundBackup, Manifest } from './manifest.ts';
import { choose } from './prune.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-01-10T00:00:00Z');

/** A backup of so many hours ago. */
const backup = (hours: number, unavailable: readonly object[] = []): FoundBackup => ({
  id: `-${hours}h`,
  manifest: { moment: new Date(NOW - hours * HOUR).toISOString(), blobs: { unavailable } } as Manifest,
  problem: undefined,
});
const damaged: FoundBackup = { id: 'damaged', manifest: undefined, problem: 'the manifest is not JSON' };
const idsOf = (backups: readonly FoundBackup[]): string[] => backups.map(({ id }) => id);

test('a retention keeps the newest backups', () => {
  const all = [backup(72), backup(48), backup(24)];
  assert.deepEqual(idsOf(choose(all, { count: 2 }, NOW).kept), ['-48h', '-24h']);
  assert.deepEqual(idsOf(choose(all, { count: 2 }, NOW).removed), ['-72h']);
  assert.deepEqual(idsOf(choose(all, { count: 9 }, NOW).removed), []);
});

test('a retention keeps young backups, and the newest however old it is', () => {
  assert.deepEqual(idsOf(choose([backup(72), backup(48), backup(24)], { ageMs: 50 * HOUR }, NOW).removed), ['-72h']);
  assert.deepEqual(idsOf(choose([backup(72), backup(48)], { ageMs: HOUR }, NOW).removed), ['-72h']);
  assert.deepEqual(idsOf(choose([], { ageMs: HOUR }, NOW).kept), []);
});

test('a retention neither counts nor removes backups whose manifest cannot be read', () => {
  const { kept, removed } = choose([backup(72), backup(48), damaged], { count: 1 }, NOW);
  assert.deepEqual(idsOf(kept), ['-48h', 'damaged']);
  assert.deepEqual(idsOf(removed), ['-72h']);
});

test('backups that lack blobs do not displace complete ones, and are removed too', () => {
  const lacking = (hours: number): FoundBackup => backup(hours, [{}]);
  const all = [lacking(96), backup(72), backup(48), lacking(24), lacking(12)];
  assert.deepEqual(idsOf(choose(all, { count: 1 }, NOW).kept), ['-48h', '-12h']);
  assert.deepEqual(idsOf(choose(all, { count: 2 }, NOW).kept), ['-72h', '-48h', '-24h', '-12h']);
  assert.deepEqual(idsOf(choose(all, { ageMs: 20 * HOUR }, NOW).kept), ['-48h', '-12h']);
});
