import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { periodOf } from './eol-tags.ts';
import { versionsOfTag } from './version-lifecycles.ts';

test('a tag belongs to the versions that its name begins with, the longest first', () => {
  for (const [name, versions] of [
    ['3.12', ['3.12', '3']],
    ['v3.12', ['3.12', '3']],
    ['3.12.4-dev', ['3.12.4-dev', '3.12.4', '3.12', '3']],
    ['latest', ['latest']],
    ['latest-dev', ['latest-dev', 'latest']],
    ['very', ['very']],
    ['_1', ['_1']],
    ['1_2', ['1_2', '1']],
    ['3.12.', ['3.12.', '3.12', '3']],
  ] as const) {
    assert.deepEqual(versionsOfTag(name), versions, name);
  }
});

test('versions are prefixes that end before a separator, and none is longer than 64 characters', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/), (name) => {
      const plain = name.replace(/^v(?=\d)/, '');
      const versions = versionsOfTag(name);
      assert.equal(new Set(versions).size, versions.length);
      for (const version of versions) {
        assert.ok(version.length > 0 && version.length <= 64 && plain.startsWith(version));
        assert.match(plain.slice(version.length), /^(?:$|[._-])/);
      }
      assert.deepEqual(
        versions,
        versions.toSorted((a, b) => b.length - a.length),
      );
    }),
  );
});

test('the dates of a life cycle determine the status', () => {
  const lifecycle = { eolDate: '2026-04-30', gracePeriodExpiryDate: '2026-10-30', eolBroken: false };
  const { eolDate } = lifecycle;
  const withoutGrace = { ...lifecycle, gracePeriodExpiryDate: '' };
  for (const [given, time, status, grace] of [
    [undefined, '2026-01-01T00:00:00Z', 'active', 'not eligible'],
    [{ ...withoutGrace, eolDate: '' }, '2026-01-01T00:00:00Z', 'active', 'not eligible'],
    [lifecycle, '2026-04-29T23:59:59.999Z', 'active', 'eligible'],
    [withoutGrace, '2026-04-29T23:59:59.999Z', 'active', 'not eligible'],
    [lifecycle, `${eolDate}T00:00:00Z`, 'in grace', 'active'],
    [{ ...lifecycle, eolBroken: true }, `${eolDate}T00:00:00Z`, 'inactive', 'broken'],
    [withoutGrace, `${eolDate}T00:00:00Z`, 'inactive', 'not eligible'],
    [lifecycle, '2026-10-29T23:59:59.999Z', 'in grace', 'active'],
    [lifecycle, '2026-10-30T00:00:00Z', 'inactive', 'expired'],
  ] as const) {
    assert.deepEqual(periodOf(given, Date.parse(time)), { status, grace }, time);
  }
});
