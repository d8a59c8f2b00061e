/** An address as a number, and how many bits it has. */
interface Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
}

interface Block extends Address {
  /** How many of the first bits are fixed. */
  readonly prefix: number;
}

/** What the IANA registries of special-purpose addresses (RFC 6890) keep out of the public internet, and a little more. */
const closed = [
  '0.0.0.0/8', // this network; 0.0.0.0 reaches the machine itself
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT; clouds put metadata here too
  '127.0.0.0/8',
  '168.63.129.16/32', // looks public, and is the host below every machine on Azure
  '169.254.0.0/16', // link-local, and the metadata service of most clouds
  '172.16.0.0/12',
  '192.0.0.0/24', // protocol assignments; Oracle has its metadata here
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '2001::/23', // protocol assignments; among them Teredo, which carries any IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which carries any IPv4 address
  '3fff::/20', // documentation
].map(parseBlock);

/** Of IPv6, only this has ever been given out as global unicast (RFC 4291); loopback, ULA and the rest lie outside. */
const globalUnicast = parseBlock('2000::/3');

/** IPv6 notations of IPv4 addresses: mapped (RFC 4291) and NAT64 (RFC 6052). They are as public as what they carry. */
const carriers = ['::ffff:0:0/96', '64:ff9b::/96'].map(parseBlock);

/** Whether an address lies on the public internet. A text that is no IP address does not. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && isPublic(address);
}

function isPublic(address: Address): boolean {
  if (carriers.some((block) => holds(block, address))) {
    return isPublic({ value: BigInt.asUintN(32, address.value), bits: 32 });
  }
  if (address.bits === 128 && !holds(globalUnicast, address)) return false;
  return !closed.some((block) => holds(block, address));
}

function holds({ value, bits, prefix }: Block, address: Address): boolean {
  const rest = BigInt(bits - prefix);
  return bits === address.bits && value >> rest === address.value >> rest;
}

function parseBlock(text: string): Block {
  const [start = '', prefix] = text.split('/');
  const address = parseAddress(start);
  if (!address) throw new Error(`${text} is not a block of addresses`);
  return { ...address, prefix: Number(prefix) };
}

function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? parseIPv6(text) : parseIPv4(text);
  return value === undefined ? undefined : { value, bits: text.includes(':') ? 128 : 32 };
}

/** Four decimal numbers and nothing else: 127.1 and 0177.0.0.1 mean different things to different programs. */
function parseIPv4(text: string): bigint | undefined {
  if (!/^(?:(?:0|[1-9][0-9]{0,2})(?:\.(?!$)|$)){4}$/.test(text)) return undefined;
  const octets = text.split('.').map(Number);
  return octets.some((octet) => octet > 255) ? undefined : combine(octets, 8n);
}

/** Any notation of RFC 4291; none with a zone, since a zone only makes sense for link-local addresses. */
function parseIPv6(text: string): bigint | undefined {
  const [, front = text, dotted] = /^(.*:)([0-9.]+\.[0-9.]+)$/.exec(text) ?? [];
  const tail = dotted === undefined ? undefined : parseIPv4(dotted);
  if (dotted !== undefined && tail === undefined) return undefined;
  const hex = tail === undefined ? text : `${front}${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`;

  const [head = '', rest, ...more] = hex.split('::');
  if (more.length > 0) return undefined;
  const left = head === '' ? [] : head.split(':');
  const right = rest === undefined || rest === '' ? [] : rest.split(':');
  const missing = 8 - left.length - right.length;
  // A double colon stands for one group or more.
  if (rest === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...left, ...Array<string>(missing).fill('0'), ...right];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  const words = groups.map((group) => Number.parseInt(group, 16));
  return combine(words, 16n);
}

function combine(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((value, part) => (value << width) | BigInt(part), 0n);
}
