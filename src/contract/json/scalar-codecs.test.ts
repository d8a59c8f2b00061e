import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScalarType } from '@bufbuild/protobuf';
import { methodNamed } from '../contract.testing.ts';
import { CapabilitySchema } from '../gen/capabilities/capabilities_pb.js';
import { RepoSchema } from '../gen/chainguard/platform/registry/v2/repos_pb.js';
import { codecOf, scalarCodec } from './scalar-codecs.ts';

const json = (type: ScalarType, ...values: unknown[]) => values.map(scalarCodec(type).json);
const text = (type: ScalarType, ...values: string[]) => values.map(scalarCodec(type).text);
const none = (count: number) => Array<undefined>(count).fill(undefined);

test('32-bit integers are numbers or numeric strings in range', () => {
  assert.deepEqual(json(ScalarType.INT32, 0, -1, 1.0, 1e3, '7', 2 ** 31 - 1, -(2 ** 31)), [
    0,
    -1,
    1,
    1000,
    7,
    2 ** 31 - 1,
    -(2 ** 31),
  ]);
  assert.ok(Object.is(scalarCodec(ScalarType.INT32).json(-0), 0));
  const wrong = [
    2 ** 31,
    -(2 ** 31) - 1,
    1.5,
    Number.NaN,
    1e300,
    '',
    ' 1',
    '1.0',
    '01',
    '-0',
    '0x1',
    '1e3',
    '9'.repeat(30),
    true,
    [],
    {},
  ];
  assert.deepEqual(json(ScalarType.INT32, ...wrong), none(wrong.length));
  assert.deepEqual(json(ScalarType.UINT32, 2 ** 32 - 1, 2 ** 32, -1), [2 ** 32 - 1, undefined, undefined]);
});

test('64-bit integers are strings, or numbers that are exact', () => {
  const max = 2n ** 63n - 1n;
  assert.deepEqual(json(ScalarType.INT64, String(max), String(-max - 1n), 12, 2 ** 53 - 1), [
    max,
    -max - 1n,
    12n,
    2n ** 53n - 1n,
  ]);
  const wrong = [String(max + 1n), String(-max - 2n), 2 ** 53, 1.5, '1.5', '9'.repeat(5000), null, true];
  assert.deepEqual(json(ScalarType.INT64, ...wrong), none(wrong.length));
  assert.deepEqual(json(ScalarType.UINT64, String(2n ** 64n - 1n), '-1'), [2n ** 64n - 1n, undefined]);
});

test('strings are valid Unicode without NUL', () => {
  assert.deepEqual(json(ScalarType.STRING, '', 'ü🚢\n'), ['', 'ü🚢\n']);
  assert.deepEqual(json(ScalarType.STRING, 'a\0', '\ud83d', 'a\udea2b', 1, true, ['a']), none(6));
});

test('booleans are true and false', () => {
  assert.deepEqual(json(ScalarType.BOOL, true, false, 'true', 1, 0), [true, false, ...none(3)]);
  assert.deepEqual(text(ScalarType.BOOL, 'true', 'false', '1', 'TRUE', ''), [true, false, ...none(3)]);
});

test('bytes are base64 in either alphabet, with or without padding', () => {
  const bytes = new Uint8Array([0xfb, 0xff, 0x01, 0x02]);
  assert.deepEqual(json(ScalarType.BYTES, '+/8BAg==', '-_8BAg', '+/8BAg', ''), [bytes, bytes, bytes, new Uint8Array()]);
  const wrong = [
    '+',
    '+/8BA',
    '+/8BAg=',
    '+/8B====',
    'a b=',
    'ä',
    '=',
    '===='.repeat(100_000),
    `${'='.repeat(1_000_000)}x`,
    7,
  ];
  assert.deepEqual(json(ScalarType.BYTES, ...wrong), none(wrong.length));
});

test('enum values are given by name or number, and the error lists them', () => {
  const tier = codecOf(RepoSchema.field.catalogTier);
  assert.ok(tier);
  assert.deepEqual(['CATALOG_TIER_BASE', 2, '2', 'CATALOG_TIER_UNSPECIFIED', 0].map(tier.json), [2, 2, 2, 0, 0]);
  assert.deepEqual(
    ['BASE', 'catalog_tier_base', 99, '99', -1, null, 'constructor', '__proto__'].map(tier.json),
    none(8),
  );
  assert.match(tier.expected, /^one of CATALOG_TIER_APPLICATION, CATALOG_TIER_BASE, /);

  const capabilities = methodNamed('CreateRole').desc.input.field.role?.message?.field.capabilities;
  assert.ok(capabilities);
  assert.equal(
    codecOf(capabilities)?.expected,
    `the name of a Capability, such as ${CapabilitySchema.values[1]?.name}`,
  );
});

test('the plus sign of a time offset may have been decoded to a space in a query', () => {
  const since = methodNamed('ListTags').desc.input.field.updatedSince;
  assert.ok(since);
  const codec = codecOf(since);
  assert.deepEqual(codec?.text('2026-01-01T14:00:00 02:00'), codec?.text('2026-01-01T12:00:00Z'));
  assert.equal(codec?.json('2026-01-01T14:00:00 02:00'), undefined);
});
