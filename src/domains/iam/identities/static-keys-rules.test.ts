import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Identity_StaticKeysSchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  hasUsableKey,
  MAX_STATIC_KEYS_LIFETIME_MS,
  staticKeysProblems,
  staticKeysWarning,
} from './static-keys-rules.ts';

type Init = MessageInitShape<typeof Identity_StaticKeysSchema>;

const NOW = Date.UTC(2030, 0, 1);
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const key = publicKey.export({ format: 'jwk' });
const set = (...keys: unknown[]): string => JSON.stringify({ keys });
const valid = { issuer: 'https://kubernetes.default.svc', subject: 'system:serviceaccount:a:b', issuerKeys: set(key) };

const keysOf = (init: Init) => create(Identity_StaticKeysSchema, { ...valid, ...init });
const problems = (init: Init, existing?: Init) =>
  staticKeysProblems(keysOf(init), NOW, existing && keysOf(existing)).map(
    ({ field, description }) => `${field} ${description}`,
  );
const until = (ms: number) => ({ expirationTime: timestampFromMs(ms) });

test('valid keys', () => {
  const small = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const inits: Init[] = [{}, { issuerKeys: set(key, small) }, { issuerKeys: set(...Array(20).fill(key)) }];
  // The server does not contact the issuer of static keys, so any name will do.
  inits.push(
    { issuer: 'urn:cluster' },
    { audiences: ['a', 'b'] },
    until(NOW + 1),
    until(NOW + MAX_STATIC_KEYS_LIFETIME_MS),
  );
  for (const init of inits) assert.deepEqual(problems(init), []);
});

test('each violation names its field and what is allowed', () => {
  const wrong: [Init, RegExp][] = [
    [{ issuer: '' }, /^static_keys\.issuer must have 1 to 1024/],
    [{ subject: '' }, /^static_keys\.subject must have 1 to 1024/],
    [{ issuerKeys: '' }, /^static_keys\.issuer_keys is required/],
    [{ issuerKeys: set(...Array(21).fill(key)) }, /^static_keys\.issuer_keys must have at most 20 keys/],
    [{ issuerKeys: ' '.repeat(70_000) }, /^static_keys\.issuer_keys must have at most 65536 characters/],
    [
      { issuerKeys: set(key, privateKey.export({ format: 'jwk' })) },
      /^static_keys\.issuer_keys keys\[1\] has a private/,
    ],
    [{ issuerKeys: set({ kty: 'oct', k: 'AAAA' }) }, /^static_keys\.issuer_keys keys\[0\] is symmetric/],
    [{ issuerKeys: '{"kty":"oct","k":"AAAA"}' }, /^static_keys\.issuer_keys is symmetric/],
    [{ issuerKeys: JSON.stringify(privateKey.export({ format: 'jwk' })) }, /^static_keys\.issuer_keys has a private/],
    [
      { issuerKeys: String(privateKey.export({ format: 'pem', type: 'pkcs8' })) },
      /^static_keys\.issuer_keys has a private/,
    ],
    [{ audiences: ['a', ''] }, /^static_keys\.audiences\[1\] must have 1 to 1024/],
    [{ audiences: Array(21).fill('a') }, /^static_keys\.audiences must have at most 20/],
    [until(NOW), /^static_keys\.expiration_time must be in the future/],
    [
      until(NOW + MAX_STATIC_KEYS_LIFETIME_MS + 1),
      /^static_keys\.expiration_time must be at most 365 days in the future/,
    ],
  ];
  for (const [init, expected] of wrong) {
    const [problem = '', ...more] = problems(init);
    assert.match(problem, expected);
    assert.deepEqual(more, []);
  }
});

test('an unchanged expiry is not checked again', () => {
  assert.deepEqual(problems(until(NOW - 5), until(NOW - 5)), []);
  assert.equal(problems(until(NOW - 4), until(NOW - 5)).length, 1);
});

test('keys that cannot be used are accepted with a warning', () => {
  const rsa1024 = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const odd: [issuerKeys: string, isUsable: boolean, warning: RegExp][] = [
    ['not JSON', false, /not a JSON Web Key Set.*no token can authenticate/],
    ['{"keys"', false, /not a JSON Web Key Set/],
    ['null', false, /not a JSON Web Key Set/],
    ['{"keys":{}}', false, /not a JSON Web Key Set/],
    [JSON.stringify(key), false, /not a JSON Web Key Set/],
    [String(publicKey.export({ format: 'pem', type: 'spki' })), false, /not a JSON Web Key Set/],
    [set(), false, /has no key that can be used; no token/],
    [set(rsa1024), false, /has no key that can be used; keys\[0\] has 1024 bits.*; no token/],
    [set(key, 7), true, /these keys are not used: keys\[1\] is not a JSON object/],
    ['['.repeat(65_536), false, /not a JSON Web Key Set/],
  ];
  for (const [issuerKeys, isUsable, warning] of odd) {
    assert.deepEqual(problems({ issuerKeys }), []);
    assert.equal(hasUsableKey(keysOf({ issuerKeys })), isUsable, issuerKeys.slice(0, 80));
    assert.match(staticKeysWarning(keysOf({ issuerKeys })) ?? '', warning);
  }
  assert.equal(staticKeysWarning(keysOf({})), undefined);
});
