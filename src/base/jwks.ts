import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';

/** A key that verifies signatures. */
export interface PublicKey {
  readonly id: string | undefined;
  /** The algorithms of RFC 7518 and RFC 8037 that the key may be used with. */
  readonly algorithms: readonly string[];
  readonly key: KeyObject;
}

export type KeySet = readonly PublicKey[];

/** The fields of a token's header that select its key. */
export interface SignatureHeader {
  readonly alg: string;
  readonly kid: string | undefined;
}

/** Below 2048 bits RSA is weak (RFC 7518, section 3.3). Above 8192 bits each verification takes milliseconds. */
const RSA_BITS = { min: 2048, max: 8192 };
const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ed25519 = ['EdDSA', 'Ed25519'];
const byCurve: Readonly<Record<string, readonly string[]>> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
};

/** The algorithms that tokens may be signed with. None is symmetric: with such a key the verifier could also sign. */
export const ALGORITHMS: readonly string[] = [...rsa, ...ed25519, ...Object.values(byCurve).flat()];

/** The keys that may have made a signature. A key without an id matches every `kid`. */
export const matchingKeys = (keys: KeySet, { alg, kid }: SignatureHeader): PublicKey[] =>
  keys.filter((key) => key.algorithms.includes(alg) && (kid === undefined || key.id === undefined || key.id === kid));

/**
 * Returns why a text must not be stored as public keys: it has a private or symmetric key, which every reader of the
 * identity would see. Returns undefined for any other text, whether it is a key set or not.
 */
export function secretKeyProblem(text: string): string | undefined {
  if (text.includes('PRIVATE KEY-----')) return 'has a private key: send only the public key';
  const jwks = parseJson(text);
  const members = isRecord(jwks) && Array.isArray(jwks.keys) ? jwks.keys : [jwks];
  for (const [at, jwk] of members.entries()) {
    const problem = isRecord(jwk) ? secretProblem(jwk) : undefined;
    if (problem !== undefined) return members[0] === jwks ? problem : `keys[${at}] ${problem}`;
  }
  return undefined;
}

/**
 * Reads a JSON Web Key Set (RFC 7517). Each member is a key, or the reason why the key is not accepted. Returns
 * undefined when the value is not a key set.
 */
export function readKeySet(jwks: unknown): (PublicKey | string)[] | undefined {
  const members = isRecord(jwks) ? jwks.keys : undefined;
  return Array.isArray(members) ? members.map(readKey) : undefined;
}

/** Parses the JSON text of a key set. */
export const parseKeySet = (text: string): (PublicKey | string)[] | undefined => readKeySet(parseJson(text));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The valid keys, without the reasons for the others. */
export const usableKeys = (keys: readonly (PublicKey | string)[]): KeySet =>
  keys.filter((key) => typeof key !== 'string');

const UNKNOWN = 'is not a public key of a supported type: use RSA, EC (P-256, P-384, P-521) or Ed25519';

function readKey(jwk: unknown): PublicKey | string {
  if (!isRecord(jwk)) return 'is not a JSON object';
  const secret = secretProblem(jwk);
  if (secret !== undefined) return secret;
  if (jwk.use !== undefined && jwk.use !== 'sig') return 'is not for signatures: its "use" must be "sig" or absent';
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) {
    return 'is not for verifying signatures: its "key_ops" must contain "verify" or be absent';
  }
  const key = importKey(jwk);
  if (!key) return UNKNOWN;
  const supported = algorithmsOf(key);
  if (typeof supported === 'string') return supported;
  const algorithms = jwk.alg === undefined ? supported : supported.filter((algorithm) => algorithm === jwk.alg);
  if (algorithms.length === 0) return `cannot be used with its "alg"; supported are ${supported.join(', ')}`;
  return { id: typeof jwk.kid === 'string' ? jwk.kid : undefined, algorithms, key };
}

function secretProblem(jwk: Record<string, unknown>): string | undefined {
  if (jwk.kty === 'oct') return 'is symmetric: send the public key of an asymmetric key pair';
  return 'd' in jwk || 'p' in jwk || 'k' in jwk ? 'has a private part: send only the public key' : undefined;
}

function importKey(jwk: Record<string, unknown>): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** The algorithms that a key can be used with, or the reason why it is not accepted. */
function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails: details }: KeyObject): readonly string[] | string {
  if (asymmetricKeyType === 'ed25519') return ed25519;
  if (asymmetricKeyType !== 'rsa') return byCurve[details?.namedCurve ?? ''] ?? UNKNOWN;
  const { modulusLength: bits = 0, publicExponent = 0n } = details ?? {};
  if (bits < RSA_BITS.min || bits > RSA_BITS.max) {
    return `has ${bits} bits: RSA keys must have ${RSA_BITS.min} to ${RSA_BITS.max}`;
  }
  return publicExponent < 3n ? 'has a public exponent below 3, with which signatures can be forged' : rsa;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
