/** An address as a number, and how many bits it has. */
interface Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
}

interface Block extends Address {
  /** How many of the first bits are fixed. */
  readonly prefix: number;
}

/** Blocks that are not public: the IANA registries of special-purpose addresses (RFC 6890), and a few more. */
const reservedBlocks = [
  '0.0.0.0/8', // this network; 0.0.0.0 connects to the machine itself
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT; some clouds serve instance metadata here
  '127.0.0.0/8',
  '168.63.129.16/32', // public by its form, but the host of every virtual machine on Azure
  '169.254.0.0/16', // link-local; instance metadata of most clouds
  '172.16.0.0/12',
  '192.0.0.0/24', // protocol assignments; instance metadata of Oracle Cloud
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '2001::/23', // protocol assignments, with Teredo, which contains any IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which contains any IPv4 address
  '3fff::/20', // documentation
].map(parseBlock);

/** The only IPv6 block that is allocated for global unicast (RFC 4291). Loopback, ULA and others are outside of it. */
const globalUnicast = parseBlock('2000::/3');

/** IPv6 blocks that contain IPv4 addresses: mapped (RFC 4291) and NAT64 (RFC 6052). The IPv4 address decides. */
const ipv4InIpv6Blocks = ['::ffff:0:0/96', '64:ff9b::/96'].map(parseBlock);

/** Whether a text is an IP address in a usual notation, without brackets. */
export const isIpAddress = (text: string): boolean => parseAddress(text) !== undefined;

/** Whether a text is an IP address of the public internet. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && isPublic(address);
}

function isPublic(address: Address): boolean {
  if (ipv4InIpv6Blocks.some((block) => contains(block, address))) {
    return isPublic({ value: BigInt.asUintN(32, address.value), bits: 32 });
  }
  if (address.bits === 128 && !contains(globalUnicast, address)) return false;
  return !reservedBlocks.some((block) => contains(block, address));
}

function contains({ value, bits, prefix }: Block, address: Address): boolean {
  const rest = BigInt(bits - prefix);
  return bits === address.bits && value >> rest === address.value >> rest;
}

function parseBlock(text: string): Block {
  const [start = '', prefix] = text.split('/');
  const address = parseAddress(start);
  if (!address) throw new Error(`${text} is not a block of IP addresses`);
  return { ...address, prefix: Number(prefix) };
}

function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? parseIPv6(text) : parseIPv4(text);
  return value === undefined ? undefined : { value, bits: text.includes(':') ? 128 : 32 };
}

/** Accepts only four decimal numbers: programs disagree about the meaning of 127.1 and 0177.0.0.1. */
function parseIPv4(text: string): bigint | undefined {
  if (!/^(?:(?:0|[1-9][0-9]{0,2})(?:\.(?!$)|$)){4}$/.test(text)) return undefined;
  const octets = text.split('.').map(Number);
  return octets.some((octet) => octet > 255) ? undefined : combine(octets, 8n);
}

/** Accepts any notation of RFC 4291, but no zone: only link-local addresses have one. */
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
  // A double colon replaces one group or more.
  if (rest === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...left, ...Array<string>(missing).fill('0'), ...right];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  const words = groups.map((group) => Number.parseInt(group, 16));
  return combine(words, 16n);
}

function combine(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((value, part) => (value << width) | BigInt(part), 0n);
}
