import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  camelCase,
  formatDuration,
  formatFieldMask,
  formatTimestamp,
  parseDuration,
  parseFieldMask,
  parseTimestamp,
} from './well-known.ts';

test('reads RFC 3339 with any offset', () => {
  const noon = { seconds: 1_767_268_800n, nanos: 0 };
  assert.deepEqual(parseTimestamp('2026-01-01T12:00:00Z'), noon);
  assert.deepEqual(parseTimestamp('2026-01-01t12:00:00z'), noon);
  assert.deepEqual(parseTimestamp('2026-01-01T14:30:00+02:30'), noon);
  assert.deepEqual(parseTimestamp('2026-01-01T07:00:00-05:00'), noon);
  assert.deepEqual(parseTimestamp('2026-01-01T12:00:00.5Z'), { ...noon, nanos: 500_000_000 });
  assert.deepEqual(parseTimestamp('2026-01-01T12:00:00.123456789Z'), { ...noon, nanos: 123_456_789 });
  assert.deepEqual(parseTimestamp('2024-02-29T00:00:00Z'), { seconds: 1_709_164_800n, nanos: 0 });
  assert.deepEqual(parseTimestamp('1969-12-31T23:59:59.9Z'), { seconds: -1n, nanos: 900_000_000 });
  assert.deepEqual(parseTimestamp('0001-01-01T00:00:00Z'), { seconds: -62_135_596_800n, nanos: 0 });
  assert.deepEqual(parseTimestamp('9999-12-31T23:59:59.999999999Z'), { seconds: 253_402_300_799n, nanos: 999_999_999 });
});

for (const text of [
  '',
  'now',
  '2026-01-01',
  '2026-01-01T12:00:00',
  '2026-01-01 12:00:00Z',
  '2026-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T12:60:00Z',
  '2026-01-01T12:00:60Z',
  '2026-01-01T12:00:00.Z',
  '2026-01-01T12:00:00.1234567890Z',
  '2026-01-01T12:00:00+24:00',
  '2026-01-01T12:00:00+02',
  '0000-12-31T23:59:59Z',
  '0001-01-01T00:00:00+00:01',
  '9999-12-31T23:59:59-00:01',
  '+12026-01-01T12:00:00Z',
  '1767268800',
]) {
  test(`refuses ${text || 'nothing'} as a time`, () => assert.equal(parseTimestamp(text), undefined));
}

test('writes times like Date does, in UTC with three decimals', () => {
  const range = { min: -62_135_596_800_000, max: 253_402_300_799_999 };
  fc.assert(
    fc.property(fc.integer(range), fc.nat(999_999), (ms, belowMs) => {
      const seconds = Math.floor(ms / 1000);
      const nanos = (ms - seconds * 1000) * 1_000_000 + belowMs;
      assert.equal(formatTimestamp({ seconds: BigInt(seconds), nanos }), new Date(ms).toISOString());
    }),
    {
      seed: 1,
      numRuns: 5000,
      examples: [
        [range.min, 0],
        [range.max, 0],
        [-1, 0],
        [0, 0],
      ],
    },
  );
});

test('a time out of range is written as the nearest one', () => {
  assert.equal(formatTimestamp({ seconds: 2n ** 62n, nanos: 0 }), '9999-12-31T23:59:59.999Z');
  assert.equal(formatTimestamp({ seconds: -(2n ** 62n), nanos: 0 }), '0001-01-01T00:00:00.000Z');
});

test('reads durations', () => {
  assert.deepEqual(parseDuration('3s'), { seconds: 3n, nanos: 0 });
  assert.deepEqual(parseDuration('3.5s'), { seconds: 3n, nanos: 500_000_000 });
  assert.deepEqual(parseDuration('-3.5s'), { seconds: -3n, nanos: -500_000_000 });
  assert.deepEqual(parseDuration('-0.000000001s'), { seconds: 0n, nanos: -1 });
  assert.deepEqual(parseDuration('-3s'), { seconds: -3n, nanos: 0 });
  assert.deepEqual(parseDuration('315576000000s'), { seconds: 315_576_000_000n, nanos: 0 });
  for (const text of [
    '',
    '3',
    's',
    '3m',
    '1h',
    '3.s',
    '.5s',
    '+3s',
    '3.1234567890s',
    '315576000001s',
    '9999999999999s',
    ' 3s',
  ]) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test('writes durations with no decimals or three, six or nine', () => {
  assert.equal(formatDuration({ seconds: 3n, nanos: 0 }), '3s');
  assert.equal(formatDuration({ seconds: 3n, nanos: 500_000_000 }), '3.500s');
  assert.equal(formatDuration({ seconds: 0n, nanos: 1_000 }), '0.000001s');
  assert.equal(formatDuration({ seconds: 0n, nanos: -1 }), '-0.000000001s');
  assert.equal(formatDuration({ seconds: -3n, nanos: -500_000_000 }), '-3.500s');
});

test('reads masks in either spelling', () => {
  assert.deepEqual(parseFieldMask('name,claimMatch.issuerPattern, sync_config ,'), {
    paths: ['name', 'claim_match.issuer_pattern', 'sync_config'],
  });
  assert.deepEqual(parseFieldMask('*'), { paths: ['*'] });
  assert.deepEqual(parseFieldMask(''), { paths: [] });
  for (const text of ['a b', 'a..b', '.a', 'a.', "name'", 'a;b', '**', '1a', 'a\0']) {
    assert.equal(parseFieldMask(text), undefined, text);
  }
});

test('writes masks in camelCase', () => {
  assert.equal(formatFieldMask({ paths: ['name', 'claim_match.issuer_pattern'] }), 'name,claimMatch.issuerPattern');
  assert.equal(camelCase('sha_256_sum'), 'sha256Sum');
});
