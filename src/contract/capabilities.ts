import { Capability, CapabilitySchema } from './gen/capabilities/capabilities_pb.js';
import { capabilityOptions } from './options.ts';

/** The options of one capability in the contract. */
export interface CapabilityInfo {
  readonly capability: Capability;
  /** The dotted name, such as `groups.list`, which users, tokens and v1 roles use. */
  readonly name: string;
  /** The position of its bit in a CapabilitySet. */
  readonly bit: number;
  /** A role that has it must also have CAP_INTERNAL. */
  readonly internalOnly: boolean;
  /** The built-in role that holds it, for a capability that only this server has. */
  readonly grantedTo: string | undefined;
}

/** All capabilities, sorted by enum number, without UNKNOWN. */
export const allCapabilities: readonly CapabilityInfo[] = CapabilitySchema.values
  .filter((value) => value.number !== Capability.UNKNOWN)
  .map((value) => {
    const { name, bit, internalOnly, grantedTo } = capabilityOptions(value);
    return { capability: value.number, name, bit, internalOnly, grantedTo: grantedTo || undefined };
  })
  .sort((a, b) => a.capability - b.capability);

const byCapability = new Map(allCapabilities.map((info) => [info.capability, info]));
const byName = new Map(allCapabilities.map((info) => [info.name, info.capability]));

/** Undefined for UNKNOWN and for a number that the contract does not have. */
export const capabilityInfo = (capability: Capability): CapabilityInfo | undefined => byCapability.get(capability);

/** The dotted name, or the number if the contract does not have it. */
export const capabilityName = (capability: Capability): string =>
  capabilityInfo(capability)?.name ?? String(capability);

export const capabilityByName = (dotted: string): Capability | undefined => byName.get(dotted);

/** A set of capabilities: bit i is set for the capability whose `bit` is i. */
export type CapabilitySet = bigint;

export const NO_CAPABILITIES: CapabilitySet = 0n;

/** Throws for a number that the contract does not have: to ignore a required capability would grant access. */
export function capabilitySetOf(capabilities: Iterable<Capability>): CapabilitySet {
  let set = NO_CAPABILITIES;
  for (const capability of capabilities) {
    const info = capabilityInfo(capability);
    if (info === undefined) throw new RangeError(`there is no capability with number ${capability}`);
    set |= 1n << BigInt(info.bit);
  }
  return set;
}

const ALL_CAPABILITIES = capabilitySetOf(byCapability.keys());

export function hasCapability(set: CapabilitySet, capability: Capability): boolean {
  const info = capabilityInfo(capability);
  return info !== undefined && ((set >> BigInt(info.bit)) & 1n) === 1n;
}

export const capabilityUnion = (...sets: readonly CapabilitySet[]): CapabilitySet =>
  sets.reduce((a, b) => a | b, NO_CAPABILITIES);

/** The capabilities in `set` that are not in `removed`. */
export const withoutCapabilities = (set: CapabilitySet, removed: CapabilitySet): CapabilitySet => set & ~removed;

/** Whether `held` contains all of `required`. */
export const covers = (held: CapabilitySet, required: CapabilitySet): boolean =>
  withoutCapabilities(required, held) === NO_CAPABILITIES;

/** Sorted by enum number. */
export const capabilitiesIn = (set: CapabilitySet): Capability[] =>
  allCapabilities.filter(({ capability }) => hasCapability(set, capability)).map(({ capability }) => capability);

// The compact form is a serialized Go bitset, because existing clients read it: big-endian 64-bit words. The first word
// is the number of bits, the others hold 64 bits each. Clients expect at least 50 bits.
const WORD_BYTES = 8;
const WORD_BITS = 64n;
const MIN_BITS = 50;

/** The compact form of a set in padded base64url, as in the `cap` claim of a token. */
export function encodeCapabilitySet(set: CapabilitySet): string {
  const bits = Math.max(MIN_BITS, bitLength(set));
  const bytes = Buffer.alloc(WORD_BYTES * (1 + wordCount(bits)));
  bytes.writeBigUInt64BE(BigInt(bits));
  let remaining = set;
  for (let offset = WORD_BYTES; offset < bytes.length; offset += WORD_BYTES) {
    bytes.writeBigUInt64BE(BigInt.asUintN(64, remaining), offset);
    remaining >>= WORD_BITS;
  }
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

const bitLength = (set: CapabilitySet): number => set.toString(2).length;

const wordCount = (bits: number): number => Math.ceil(bits / 64);

const BASE64URL = /^(?:[\w-]{4})*(?:[\w-]{2}==|[\w-]{3}=)?$/;

/**
 * Reads the compact form, or an array of enum numbers. Unknown capabilities are ignored. Returns undefined for any
 * other value.
 */
export function decodeCapabilitySet(value: unknown): CapabilitySet | undefined {
  if (Array.isArray(value)) {
    return value.every(Number.isInteger)
      ? capabilitySetOf(value.filter((number) => byCapability.has(number)))
      : undefined;
  }
  if (typeof value !== 'string' || value === '' || !BASE64URL.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.length < WORD_BYTES || bytes.length % WORD_BYTES !== 0) return undefined;
  const words = bytes.length / WORD_BYTES - 1;
  if (wordCount(Number(bytes.readBigUInt64BE())) !== words) return undefined;
  let set = NO_CAPABILITIES;
  // A hostile value may have any number of words: those after the last known bit are not read.
  for (let word = Math.min(words, wordCount(bitLength(ALL_CAPABILITIES))); word > 0; word--) {
    set = (set << WORD_BITS) | bytes.readBigUInt64BE(word * WORD_BYTES);
  }
  return set & ALL_CAPABILITIES;
}
