import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';

/** A key that signatures can be checked with. */
export interface PublicKey {
  readonly id: string | undefined;
  /** Algorithms of RFC 7518 and 8037 that it may be used with. */
  readonly algorithms: readonly string[];
  readonly key: KeyObject;
}

export type KeySet = readonly PublicKey[];

/** What the header of a token says about its signature. */
export interface SignatureHeader {
  readonly alg: string;
  readonly kid: string | undefined;
}

/** Below 2048 bits RSA is weak (RFC 7518, section 3.3); far above, each check takes milliseconds. */
const RSA_BITS = { min: 2048, max: 8192 };
const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ed25519 = ['EdDSA', 'Ed25519'];
const byCurve: Readonly<Record<string, readonly string[]>> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
};

/** Every algorithm a token may be signed with. Nothing symmetric: whoever can check such a signature can also make it. */
export const ALGORITHMS: readonly string[] = [...rsa, ...ed25519, ...Object.values(byCurve).flat()];

/** The keys of a set that may have made a signature. A key without an id could be any. */
export const keysFitting = (keys: KeySet, { alg, kid }: SignatureHeader): PublicKey[] =>
  keys.filter((key) => key.algorithms.includes(alg) && (kid === undefined || key.id === undefined || key.id === kid));

/**
 * Reads a JSON Web Key Set (RFC 7517): each member is a key or the reason why it is of no use here. Answers nothing when
 * the value is no such set.
 */
export function readKeySet(jwks: unknown): (PublicKey | string)[] | undefined {
  const members = isRecord(jwks) ? jwks.keys : undefined;
  return Array.isArray(members) ? members.map(readKey) : undefined;
}

/** The same from its text. */
export function parseKeySet(text: string): (PublicKey | string)[] | undefined {
  try {
    return readKeySet(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The keys alone. */
export const usableKeys = (keys: readonly (PublicKey | string)[]): KeySet =>
  keys.filter((key) => typeof key !== 'string');

const UNKNOWN = 'is not a public key of a kind that is accepted: use RSA, EC (P-256, P-384, P-521) or Ed25519';

function readKey(jwk: unknown): PublicKey | string {
  if (!isRecord(jwk)) return 'is not a JSON object';
  if (jwk.kty === 'oct') return 'is symmetric: give the public key of an asymmetric pair';
  if ('d' in jwk || 'p' in jwk || 'k' in jwk) return 'has a private part: give the public key alone';
  if (jwk.use !== undefined && jwk.use !== 'sig') return 'is not for signatures';
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) {
    return 'is not for checking signatures';
  }
  const key = importKey(jwk);
  if (!key) return UNKNOWN;
  const fitting = algorithmsOf(key);
  if (typeof fitting === 'string') return fitting;
  const algorithms = jwk.alg === undefined ? fitting : fitting.filter((algorithm) => algorithm === jwk.alg);
  if (algorithms.length === 0) return `does not fit its algorithm; it may be ${fitting.join(', ')}`;
  return { id: typeof jwk.kid === 'string' ? jwk.kid : undefined, algorithms, key };
}

function importKey(jwk: Record<string, unknown>): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** What a key can be used with, or why it cannot. */
function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails: details }: KeyObject): readonly string[] | string {
  if (asymmetricKeyType === 'ed25519') return ed25519;
  if (asymmetricKeyType !== 'rsa') return byCurve[details?.namedCurve ?? ''] ?? UNKNOWN;
  const { modulusLength: bits = 0, publicExponent = 0n } = details ?? {};
  if (bits < RSA_BITS.min || bits > RSA_BITS.max) {
    return `has ${bits} bits: RSA keys must have ${RSA_BITS.min} to ${RSA_BITS.max}`;
  }
  return publicExponent < 3n ? 'has an exponent that lets anybody sign' : rsa;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
