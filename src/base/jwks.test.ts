import assert from 'node:assert/strict';
import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { ALGORITHMS, matchingKeys, parseKeySet, readKeySet, usableKeys } from './jwks.ts';

const jwk = (key: KeyObject, more: JsonWebKey = {}): JsonWebKey => ({ ...key.export({ format: 'jwk' }), ...more });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const ed25519 = generateKeyPairSync('ed25519');

/** The reason why the only key of a set is not accepted. */
function refusal(key: unknown): string {
  const [read] = readKeySet({ keys: [key] }) ?? [];
  return typeof read === 'string' ? read : assert.fail(`accepted ${JSON.stringify(key)}`);
}

test('each type of key has its algorithms', () => {
  const algorithms = (key: unknown) => usableKeys(readKeySet({ keys: [key] }) ?? [])[0]?.algorithms;
  assert.deepEqual(algorithms(jwk(rsa.publicKey)), ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']);
  assert.deepEqual(algorithms(jwk(rsa.publicKey, { alg: 'RS256', use: 'sig' })), ['RS256']);
  assert.deepEqual(algorithms(jwk(rsa.publicKey, { key_ops: ['verify'] }))?.length, 6);
  assert.deepEqual(algorithms(jwk(ec('P-256').publicKey)), ['ES256']);
  assert.deepEqual(algorithms(jwk(ec('P-384').publicKey)), ['ES384']);
  assert.deepEqual(algorithms(jwk(ec('P-521').publicKey)), ['ES512']);
  assert.deepEqual(algorithms(jwk(ed25519.publicKey)), ['EdDSA', 'Ed25519']);
});

test('no algorithm is symmetric or "none"', () => {
  assert.ok(!ALGORITHMS.some((algorithm) => algorithm === 'none' || algorithm.startsWith('HS')));
});

test('keys that are private, weak or for another use are not accepted', () => {
  assert.match(refusal({ kty: 'oct', k: 'c2VjcmV0' }), /symmetric/);
  for (const { privateKey } of [rsa, ec('P-256'), ed25519]) assert.match(refusal(jwk(privateKey)), /private part/);
  assert.match(refusal(jwk(small.publicKey)), /has 1024 bits: RSA keys must have 2048 to 8192/);
  assert.match(refusal(jwk(rsa.publicKey, { e: 'AQ' })), /exponent/);
  assert.match(refusal(jwk(rsa.publicKey, { use: 'enc' })), /not for signatures/);
  assert.match(refusal(jwk(rsa.publicKey, { key_ops: ['encrypt'] })), /not for verifying signatures/);
  assert.match(refusal(jwk(rsa.publicKey, { key_ops: 'verify' } as unknown as JsonWebKey)), /not for verifying/);
  assert.match(refusal(jwk(rsa.publicKey, { alg: 'HS256' })), /cannot be used with its "alg"; supported are RS256/);
  assert.match(refusal(jwk(ed25519.publicKey, { alg: 'RS256' })), /cannot be used with its "alg"/);
  const other = [jwk(ec('secp256k1').publicKey), jwk(generateKeyPairSync('x25519').publicKey), { kty: 'XX' }, {}];
  other.push({ kty: 'RSA', n: 5 } as unknown as JsonWebKey, { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' });
  for (const key of other) assert.match(refusal(key), /not a public key of a supported type/);
  for (const key of [null, 'key', 7, []]) assert.match(refusal(key), /not a JSON object/);
});

test('values that are not a key set', () => {
  for (const jwks of [undefined, null, 'keys', [], {}, { keys: {} }]) assert.equal(readKeySet(jwks), undefined);
  for (const text of ['', '{"keys":[', '7', '{}']) assert.equal(parseKeySet(text), undefined);
  assert.deepEqual(parseKeySet('{"keys":[]}'), []);
});

test('keys are matched by key id and algorithm', () => {
  const keys = [
    jwk(rsa.publicKey, { kid: 'a' }),
    jwk(ec('P-256').publicKey, { kid: 'a' }),
    jwk(ec('P-256').publicKey, { kid: 'b' }),
    jwk(ed25519.publicKey),
  ];
  const set = usableKeys(readKeySet({ keys }) ?? []);
  const found = (alg: string, kid?: string) => matchingKeys(set, { alg, kid }).map((key) => set.indexOf(key));
  assert.deepEqual(found('RS256', 'a'), [0]);
  assert.deepEqual(found('ES256', 'a'), [1]);
  assert.deepEqual(found('ES256', 'c'), []);
  assert.deepEqual(found('ES256'), [1, 2]);
  assert.deepEqual(found('EdDSA', 'any'), [3]);
  assert.deepEqual(found('HS256', 'a'), []);
  assert.deepEqual(found('none', 'a'), []);
});
