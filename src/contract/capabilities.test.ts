import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allCapabilities,
  capabilitiesIn,
  capabilityByName,
  capabilityInfo,
  capabilityName,
  capabilitySetOf,
  capabilityUnion,
  covers,
  decodeCapabilitySet,
  encodeCapabilitySet,
  hasCapability,
  NO_CAPABILITIES,
  withoutCapabilities,
} from './capabilities.ts';
import { Capability, CapabilitySchema } from './gen/capabilities/capabilities_pb.js';

interface ExpectedCapability {
  name: string;
  number: number;
  string_name: string | null;
  bit: number | null;
  internal_only: boolean;
  deprecated: boolean;
}

const expected: { reserved_numbers: number[]; values: ExpectedCapability[] } = JSON.parse(
  readFileSync(new URL('../../test/data/capabilities.json', import.meta.url), 'utf8'),
);

const someCapabilities = fc.uniqueArray(fc.constantFrom(...allCapabilities.map(({ capability }) => capability)));

test('the enum has the numbers, names and bits that existing tokens and clients use', () => {
  const published = CapabilitySchema.values.filter(({ number }) => !capabilityInfo(number)?.grantedTo);
  const actual = published.map((value) => {
    const info = capabilityInfo(value.number);
    return {
      name: value.name,
      number: value.number,
      string_name: info?.name ?? null,
      bit: info?.bit ?? null,
      internal_only: info?.internalOnly ?? false,
      deprecated: value.deprecated,
    };
  });
  assert.deepEqual(actual, expected.values);
  const reserved = CapabilitySchema.proto.reservedRange.map(({ start, end }) => {
    assert.equal(start, end, 'an enum range includes its end');
    return start;
  });
  assert.deepEqual(
    reserved,
    expected.reserved_numbers.toSorted((a, b) => a - b),
  );
});

test('capabilities that only this server has cannot collide with published ones', () => {
  for (const { name, capability, bit, grantedTo } of allCapabilities) {
    if (grantedTo !== undefined) assert.ok(capability > 100_000 && bit >= 512, name);
  }
});

test('no two capabilities share a name or a bit', () => {
  assert.equal(new Set(allCapabilities.map(({ name }) => name)).size, allCapabilities.length);
  assert.equal(new Set(allCapabilities.map(({ bit }) => bit)).size, allCapabilities.length);
});

test('a capability is found by its dotted name', () => {
  for (const { capability } of allCapabilities) assert.equal(capabilityByName(capabilityName(capability)), capability);
  assert.equal(capabilityByName('groups.list'), Capability.CAP_IAM_GROUPS_LIST);
  assert.equal(capabilityByName('groups.admire'), undefined);
  assert.equal(capabilityByName(''), undefined);
  assert.equal(capabilityInfo(Capability.UNKNOWN), undefined);
  assert.equal(capabilityName(Capability.UNKNOWN), '0');
});

test('a set contains the capabilities it was made of, sorted by number', () => {
  fc.assert(
    fc.property(someCapabilities, someCapabilities, (a, b) => {
      const [left, right] = [capabilitySetOf(a), capabilitySetOf(b)];
      assert.deepEqual(
        capabilitiesIn(left),
        a.toSorted((x, y) => x - y),
      );
      assert.deepEqual(capabilitiesIn(capabilityUnion(left, right)), capabilitiesIn(capabilitySetOf([...a, ...b])));
      assert.equal(
        covers(left, right),
        b.every((capability) => hasCapability(left, capability)),
      );
      assert.ok(covers(capabilityUnion(left, right), left));
      assert.equal(withoutCapabilities(left, right) & right, NO_CAPABILITIES);
    }),
  );
});

test('an unknown number is never in a set', () => {
  for (const number of [Capability.UNKNOWN, 99999 as Capability]) {
    assert.equal(hasCapability(capabilitySetOf(allCapabilities.map(({ capability }) => capability)), number), false);
    assert.throws(() => capabilitySetOf([number]), RangeError);
  }
});

test('the compact form has the encoding of existing clients', () => {
  // Two words: the length 50, then bit 3.
  assert.equal(encodeCapabilitySet(capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST])), 'AAAAAAAAADIAAAAAAAAACA==');
  assert.equal(encodeCapabilitySet(NO_CAPABILITIES), 'AAAAAAAAADIAAAAAAAAAAA==');
  // Bit 95 is bit 31 of the second word, and the last bit.
  const internal = Buffer.from(encodeCapabilitySet(capabilitySetOf([Capability.CAP_INTERNAL])), 'base64url');
  assert.equal(internal.toString('hex'), '0000000000000060' + '0000000000000000' + '0000000080000000');
});

test('a set is the same after it was encoded and decoded', () => {
  fc.assert(
    fc.property(
      someCapabilities,
      (some) => decodeCapabilitySet(encodeCapabilitySet(capabilitySetOf(some))) === capabilitySetOf(some),
    ),
  );
});

test('an array of numbers is decoded too, and unknown capabilities are ignored', () => {
  assert.equal(decodeCapabilitySet([103, 99999]), capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST]));
  // 1,984 bits, all set: far more than there are capabilities.
  const all = Buffer.concat([Buffer.from('00000000000007c0', 'hex'), Buffer.alloc(248, 0xff)]);
  assert.deepEqual(
    capabilitiesIn(decodeCapabilitySet(`${all.toString('base64url')}==`) ?? NO_CAPABILITIES),
    allCapabilities.map(({ capability }) => capability),
  );
});

test('a value that is not a set is decoded to undefined', () => {
  const wrongLength = Buffer.from(`${'f'.repeat(16)}${'0'.repeat(16)}`, 'hex').toString('base64url');
  const invalid = [undefined, null, 7, {}, '', 'AAAA', 'not base64!', `${wrongLength}==`, ['103'], [1.5], [null]];
  for (const value of invalid) assert.equal(decodeCapabilitySet(value), undefined, JSON.stringify(value));
  fc.assert(
    fc.property(fc.anything(), (value) => {
      const set = decodeCapabilitySet(value);
      assert.ok(set === undefined || typeof set === 'bigint');
    }),
  );
});
