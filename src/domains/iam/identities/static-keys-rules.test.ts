import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Identity_StaticKeysSchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { MAX_STATIC_KEYS_LIFETIME_MS, staticKeysProblems } from './static-keys-rules.ts';

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
  const rsa1024 = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const wrong: [Init, RegExp][] = [
    [{ issuer: '' }, /^static_keys\.issuer must have 1 to 1024/],
    [{ subject: '' }, /^static_keys\.subject must have 1 to 1024/],
    [{ issuerKeys: '' }, /^static_keys\.issuer_keys must be a JSON Web Key Set/],
    [{ issuerKeys: '{"keys"' }, /^static_keys\.issuer_keys must be a JSON Web Key Set/],
    [{ issuerKeys: JSON.stringify(key) }, /^static_keys\.issuer_keys must be a JSON Web Key Set/],
    [{ issuerKeys: set() }, /^static_keys\.issuer_keys must have 1 to 20 keys/],
    [{ issuerKeys: set(...Array(21).fill(key)) }, /^static_keys\.issuer_keys must have 1 to 20 keys/],
    [{ issuerKeys: ' '.repeat(70_000) }, /^static_keys\.issuer_keys must have at most 65536 characters/],
    [
      { issuerKeys: set(key, privateKey.export({ format: 'jwk' })) },
      /^static_keys\.issuer_keys keys\[1\] has a private/,
    ],
    [{ issuerKeys: set({ kty: 'oct', k: 'AAAA' }) }, /^static_keys\.issuer_keys keys\[0\] is symmetric/],
    [{ issuerKeys: set(rsa1024) }, /^static_keys\.issuer_keys keys\[0\] has 1024 bits/],
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
