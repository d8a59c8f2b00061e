import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allCapabilities,
  capabilityNamed,
  covers,
  decodeSet,
  encodeSet,
  has,
  infoOf,
  listOf,
  NO_CAPABILITIES,
  nameOf,
  setOf,
  union,
  without,
} from './capabilities.ts';
import { Capability, CapabilitySchema } from './gen/capabilities/capabilities_pb.js';

interface Fact {
  name: string;
  number: number;
  string_name: string | null;
  bit: number | null;
  internal_only: boolean;
  deprecated: boolean;
}

const facts: { reserved_numbers: number[]; values: Fact[] } = JSON.parse(
  readFileSync(new URL('../../test/data/capabilities.json', import.meta.url), 'utf8'),
);

const someCapabilities = fc.uniqueArray(fc.constantFrom(...allCapabilities.map(({ capability }) => capability)));

test('the enum is the one that tokens and clients know', () => {
  const ours = CapabilitySchema.values.map((value) => {
    const info = infoOf(value.number);
    return {
      name: value.name,
      number: value.number,
      string_name: info?.name ?? null,
      bit: info?.bit ?? null,
      internal_only: info?.internalOnly ?? false,
      deprecated: value.deprecated,
    };
  });
  assert.deepEqual(ours, facts.values);
  const reserved = CapabilitySchema.proto.reservedRange.map(({ start, end }) => {
    assert.equal(start, end, 'an enum range includes its end');
    return start;
  });
  assert.deepEqual(
    reserved,
    facts.reserved_numbers.toSorted((a, b) => a - b),
  );
});

test('no two capabilities share a name or a bit', () => {
  assert.equal(new Set(allCapabilities.map(({ name }) => name)).size, allCapabilities.length);
  assert.equal(new Set(allCapabilities.map(({ bit }) => bit)).size, allCapabilities.length);
});

test('dotted names lead to capabilities and back', () => {
  for (const { capability } of allCapabilities) assert.equal(capabilityNamed(nameOf(capability)), capability);
  assert.equal(capabilityNamed('groups.list'), Capability.CAP_IAM_GROUPS_LIST);
  assert.equal(capabilityNamed('groups.admire'), undefined);
  assert.equal(capabilityNamed(''), undefined);
  assert.equal(infoOf(Capability.UNKNOWN), undefined);
  assert.equal(nameOf(Capability.UNKNOWN), '0');
});

test('sets hold what was put in, sorted by number', () => {
  fc.assert(
    fc.property(someCapabilities, someCapabilities, (a, b) => {
      const [left, right] = [setOf(a), setOf(b)];
      assert.deepEqual(
        listOf(left),
        a.toSorted((x, y) => x - y),
      );
      assert.deepEqual(listOf(union(left, right)), listOf(setOf([...a, ...b])));
      assert.equal(
        covers(left, right),
        b.every((capability) => has(left, capability)),
      );
      assert.ok(covers(union(left, right), left));
      assert.equal(without(left, right) & right, NO_CAPABILITIES);
    }),
  );
});

test('a number without a meaning is never in a set', () => {
  for (const number of [Capability.UNKNOWN, 99999 as Capability]) {
    assert.equal(has(setOf(allCapabilities.map(({ capability }) => capability)), number), false);
    assert.throws(() => setOf([number]), RangeError);
  }
});

test('the compact form is what existing clients read and write', () => {
  // Two words: the length of 50, then bit 3.
  assert.equal(encodeSet(setOf([Capability.CAP_IAM_GROUPS_LIST])), 'AAAAAAAAADIAAAAAAAAACA==');
  assert.equal(encodeSet(NO_CAPABILITIES), 'AAAAAAAAADIAAAAAAAAAAA==');
  // Bit 95 is the second word's bit 31, and the last.
  const internal = Buffer.from(encodeSet(setOf([Capability.CAP_INTERNAL])), 'base64url');
  assert.equal(internal.toString('hex'), '0000000000000060' + '0000000000000000' + '0000000080000000');
});

test('the compact form loses nothing', () => {
  fc.assert(fc.property(someCapabilities, (some) => decodeSet(encodeSet(setOf(some))) === setOf(some)));
});

test('a list of numbers is read as well, and what nobody knows is left out', () => {
  assert.equal(decodeSet([103, 99999]), setOf([Capability.CAP_IAM_GROUPS_LIST]));
  // 1,984 bits, all set: far more than there are capabilities.
  const all = Buffer.concat([Buffer.from('00000000000007c0', 'hex'), Buffer.alloc(248, 0xff)]);
  assert.deepEqual(
    listOf(decodeSet(`${all.toString('base64url')}==`) ?? NO_CAPABILITIES),
    allCapabilities.map(({ capability }) => capability),
  );
});

test('what is not a set gives nothing', () => {
  const wrongLength = Buffer.from(`${'f'.repeat(16)}${'0'.repeat(16)}`, 'hex').toString('base64url');
  const nonsense = [undefined, null, 7, {}, '', 'AAAA', 'not base64!', `${wrongLength}==`, ['103'], [1.5], [null]];
  for (const value of nonsense) assert.equal(decodeSet(value), undefined, JSON.stringify(value));
  fc.assert(
    fc.property(fc.anything(), (value) => {
      const set = decodeSet(value);
      assert.ok(set === undefined || typeof set === 'bigint');
    }),
  );
});
