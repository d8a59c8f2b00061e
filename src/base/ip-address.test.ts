import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isPublicAddress } from './ip-address.ts';

test('addresses of the public internet are public', () => {
  const addresses = [
    '8.8.8.8',
    '1.1.1.1',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '192.0.1.1',
    '223.255.255.255',
  ];
  addresses.push('2606:4700:4700::1111', '2A00:1450:4001:81b::200e', '2001:200::1', '2003::1', '3ffe::1');
  addresses.push('::ffff:8.8.8.8', '::ffff:808:808', '64:ff9b::8.8.8.8', '0:0:0:0:0:ffff:0808:0808');
  for (const address of addresses) assert.ok(isPublicAddress(address), address);
});

test('reserved addresses are not public', () => {
  const self = ['0.0.0.0', '0.1.2.3', '127.0.0.1', '127.255.255.255', '::', '::1', '0:0:0:0:0:0:0:1'];
  const privateUse = [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    'fd00::1',
    'fc00::1',
    'fec0::1',
  ];
  const linkLocal = ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'];
  const metadata = ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '168.63.129.16'];
  const multicast = ['224.0.0.1', '239.1.1.1', '255.255.255.255', '240.0.0.1', 'ff02::1', 'ff0e::1'];
  const documentation = [
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '198.18.0.1',
    '2001:db8::1',
    '3fff::1',
    '100::1',
    '5f00::1',
  ];
  const containedIpv4 = [
    '::ffff:127.0.0.1',
    '::FFFF:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:0:0',
    '64:ff9b::10.0.0.1',
    '64:ff9b::a9fe:a9fe',
  ];
  const tunnels = [
    '2002:7f00:1::',
    '2002:808:808::',
    '2001::1',
    '2001:0:7f00:1::',
    '::127.0.0.1',
    '::8.8.8.8',
    '64:ff9b:1::1',
  ];
  for (const address of [
    self,
    privateUse,
    linkLocal,
    metadata,
    multicast,
    documentation,
    containedIpv4,
    tunnels,
  ].flat()) {
    assert.ok(!isPublicAddress(address), address);
  }
});

test('a text that is not an address is not public, even if other programs accept it', () => {
  const texts = [
    '',
    ' ',
    'localhost',
    'example.com',
    '8.8.8',
    '8.8',
    '134744072',
    '0x8.8.8.8',
    '08.8.8.8',
    '8.8.8.8.',
    '.8.8.8.8',
  ];
  texts.push(
    '8.8.8.256',
    '8.8.8.8 ',
    '8.8.8.8\n',
    '[2606:4700::1]',
    '2606:4700::1%1',
    '2606:::1',
    '2606::1::1',
    '2606:4700',
  );
  texts.push(
    '1:2:3:4:5:6:7:8:9',
    '2606:2:3:4:5:6:7::8',
    '2606::12345',
    '::ffff:8.8.8',
    '::8.8.8.8:1',
    '2606::g',
    ':2606::1',
    '2606::1:',
  );
  for (const text of texts) assert.ok(!isPublicAddress(text), text);
});

const octet = fc.nat(255);
const octets = fc.tuple(octet, octet, octet, octet);

test('all notations of an IPv4 address have the same result', () => {
  fc.assert(
    fc.property(octets, ([a, b, c, d]) => {
      const dotted = `${a}.${b}.${c}.${d}`;
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      const expected = isPublicAddress(dotted);
      const mapped = [`::ffff:${dotted}`, `::ffff:${hex}`, `0:0:0:0:0:FFFF:${hex}`, `64:ff9b::${dotted}`];
      for (const notation of mapped) assert.equal(isPublicAddress(notation), expected, notation);
      // The rules of RFC 1918, 1122, 3927, 6598 and 5771, independent of the table in ip-address.ts.
      const local = a === 0 || a === 10 || a === 127 || (a === 169 && b === 254) || (a === 192 && b === 168);
      const shared = (a === 172 && b >= 16 && b < 32) || (a === 100 && b >= 64 && b < 128) || a >= 224;
      if (local || shared) assert.ok(!expected, dotted);
    }),
  );
});

test('all notations of an IPv6 address have the same result, and other text is never public', () => {
  const group = fc.oneof(
    fc.constantFrom('0', '', '1', 'ffff', '2001', '2606', 'fe80'),
    fc.stringMatching(/^[0-9a-fA-F]{1,5}$/),
  );
  const text = fc.oneof(
    fc.array(group, { minLength: 2, maxLength: 9 }).map((groups) => groups.join(':')),
    fc
      .tuple(fc.array(group, { maxLength: 8 }), octets)
      .map(([groups, quad]) => `${groups.join(':')}:${quad.join('.')}`),
  );
  fc.assert(
    fc.property(text, (address) => {
      // The URL parser of Node decides what is an address, and returns its shortest notation.
      const shortest = URL.canParse(`http://[${address}]`)
        ? new URL(`http://[${address}]`).hostname.slice(1, -1)
        : undefined;
      assert.equal(isPublicAddress(address), shortest !== undefined && isPublicAddress(shortest));
    }),
    { numRuns: 2000 },
  );
});

test('no ULA, link-local, multicast or loopback address is public', () => {
  const reserved = fc.tuple(
    fc.constantFrom('fc', 'fd', 'fe8', 'fe9', 'fea', 'feb', 'ff', '0'),
    fc.nat(0xf),
    fc.nat(0xffff),
  );
  fc.assert(
    fc.property(reserved, ([start, nibble, tail]) => {
      const first = `${start}${nibble.toString(16)}00`.slice(0, 4);
      assert.ok(!isPublicAddress(`${first}::${tail.toString(16)}`), first);
    }),
  );
});
