import { bit, Capability, CapabilitySchema, internal_only, name } from './gen/capabilities/capabilities_pb.js';
import { optionOf } from './options.ts';

/** What the contract says about one capability. */
export interface CapabilityInfo {
  readonly capability: Capability;
  /** Dotted, such as `groups.list`: the form that people, tokens and v1 roles use. */
  readonly name: string;
  /** Its place in a CapabilitySet. */
  readonly bit: number;
  /** A role may hold it only together with CAP_INTERNAL. */
  readonly internalOnly: boolean;
}

/** Every capability, by enum number. UNKNOWN is none. */
export const allCapabilities: readonly CapabilityInfo[] = CapabilitySchema.values
  .filter((value) => value.number !== Capability.UNKNOWN)
  .map((value) => ({
    capability: value.number,
    name: optionOf(value, name) ?? '',
    bit: optionOf(value, bit) ?? 0,
    internalOnly: optionOf(value, internal_only) ?? false,
  }))
  .sort((a, b) => a.capability - b.capability);

const byCapability = new Map(allCapabilities.map((info) => [info.capability, info]));
const byName = new Map(allCapabilities.map((info) => [info.name, info.capability]));

/** Nothing for a number that the contract does not have, UNKNOWN included. */
export const infoOf = (capability: Capability): CapabilityInfo | undefined => byCapability.get(capability);

/** The dotted name; for a number that the contract does not have, the number. */
export const nameOf = (capability: Capability): string => infoOf(capability)?.name ?? String(capability);

/** The capability with a dotted name. */
export const capabilityNamed = (dotted: string): Capability | undefined => byName.get(dotted);

/** A set of capabilities: bit i stands for the capability whose `bit` is i. */
export type CapabilitySet = bigint;

export const NO_CAPABILITIES: CapabilitySet = 0n;

/** Throws on a number that the contract does not have: left out, it would turn a need that nobody can meet into none. */
export function setOf(capabilities: Iterable<Capability>): CapabilitySet {
  let set = NO_CAPABILITIES;
  for (const capability of capabilities) {
    const info = infoOf(capability);
    if (info === undefined) throw new RangeError(`there is no capability with number ${capability}`);
    set |= 1n << BigInt(info.bit);
  }
  return set;
}

const everything = setOf(byCapability.keys());

export function has(set: CapabilitySet, capability: Capability): boolean {
  const info = infoOf(capability);
  return info !== undefined && ((set >> BigInt(info.bit)) & 1n) === 1n;
}

export const union = (...sets: readonly CapabilitySet[]): CapabilitySet =>
  sets.reduce((a, b) => a | b, NO_CAPABILITIES);

/** What is in `set` and not in `removed`. */
export const without = (set: CapabilitySet, removed: CapabilitySet): CapabilitySet => set & ~removed;

/** Whether `held` has all that is `wanted`. */
export const covers = (held: CapabilitySet, wanted: CapabilitySet): boolean =>
  without(wanted, held) === NO_CAPABILITIES;

/** By enum number. */
export const listOf = (set: CapabilitySet): Capability[] =>
  allCapabilities.filter(({ capability }) => has(set, capability)).map(({ capability }) => capability);

// The compact form is that of a serialised Go bitset, because existing clients read it: big-endian 64-bit words, the
// first of them the number of bits, the rest the bits, 64 to a word. Clients start from a bitset of 50 bits.
const WORD_BYTES = 8;
const WORD_BITS = 64n;
const LEAST_BITS = 50;

/** The compact form of a set, as the `cap` claim of a token holds it: padded base64url. */
export function encodeSet(set: CapabilitySet): string {
  const bits = Math.max(LEAST_BITS, bitLength(set));
  const bytes = Buffer.alloc(WORD_BYTES * (1 + wordsFor(bits)));
  bytes.writeBigUInt64BE(BigInt(bits));
  let rest = set;
  for (let at = WORD_BYTES; at < bytes.length; at += WORD_BYTES) {
    bytes.writeBigUInt64BE(BigInt.asUintN(64, rest), at);
    rest >>= WORD_BITS;
  }
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

const bitLength = (set: CapabilitySet): number => set.toString(2).length;

const wordsFor = (bits: number): number => Math.ceil(bits / 64);

const BASE64URL = /^(?:[\w-]{4})*(?:[\w-]{2}==|[\w-]{3}=)?$/;

/**
 * Reads the compact form, or a list of enum numbers. Capabilities that we do not know are left out; anything else that
 * is not a set gives undefined.
 */
export function decodeSet(value: unknown): CapabilitySet | undefined {
  if (Array.isArray(value)) {
    return value.every(Number.isInteger) ? setOf(value.filter((number) => byCapability.has(number))) : undefined;
  }
  if (typeof value !== 'string' || value === '' || !BASE64URL.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.length < WORD_BYTES || bytes.length % WORD_BYTES !== 0) return undefined;
  const words = bytes.length / WORD_BYTES - 1;
  if (wordsFor(Number(bytes.readBigUInt64BE())) !== words) return undefined;
  let set = NO_CAPABILITIES;
  // Words beyond the last bit we know are not worth reading, however many there are.
  for (let word = Math.min(words, wordsFor(bitLength(everything))); word > 0; word--) {
    set = (set << WORD_BITS) | bytes.readBigUInt64BE(word * WORD_BYTES);
  }
  return set & everything;
}
