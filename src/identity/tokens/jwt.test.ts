import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { base64url, type JWTPayload } from 'jose';
import { newKey, sign } from '../../../test/support/issuer.ts';
import { ALGORITHMS, readKeySet } from '../../base/jwks.ts';
import { isSignedWith, readToken, timeProblem } from './jwt.ts';

const NOW = 2_000_000_000;
const key = newKey('one');
const encode = (value: unknown): string => base64url.encode(JSON.stringify(value));

test('a token is good from a minute before its time until a minute after', () => {
  const judge = (changes: JWTPayload) => timeProblem({ exp: NOW + 600, ...changes }, NOW * 1000);
  assert.equal(judge({}), undefined);
  assert.equal(judge({ exp: NOW - 59 }), undefined);
  assert.equal(judge({ exp: NOW - 60 }), 'the token has expired; get a new one');
  assert.equal(judge({ exp: NOW - 59.5, iat: NOW - 0.5 }), undefined);
  assert.equal(judge({ nbf: NOW + 60 }), undefined);
  assert.equal(judge({ nbf: NOW + 61 }), 'the token is not valid yet');
  assert.equal(judge({ iat: NOW + 60 }), undefined);
  assert.equal(judge({ iat: NOW + 61 }), 'the token was issued in the future');
});

test('times of another type are no times', () => {
  const judge = (claims: unknown) => timeProblem(claims as JWTPayload, NOW * 1000);
  assert.equal(judge({}), 'the token does not say when it expires');
  for (const odd of ['2100000000', null, true, {}, [], Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.equal(judge({ exp: odd }), 'the token does not say when it expires');
    assert.equal(judge({ exp: NOW, nbf: odd }), 'the token is not valid yet');
    assert.equal(judge({ exp: NOW, iat: odd }), 'the token was issued in the future');
  }
});

test('a token is taken apart', async () => {
  const token = readToken(await sign({ sub: 'somebody' }, key));
  assert.deepEqual(token, { header: { alg: 'ES256', kid: 'one' }, claims: { sub: 'somebody' } });
  const anonymous = readToken(await sign({}, key, { kid: 7 as never }));
  assert.deepEqual(anonymous, { header: { alg: 'ES256', kid: undefined }, claims: {} });
});

test('what is no token says why, whatever it is', async () => {
  const good = await sign({ sub: 'somebody' }, key);
  const [header, payload, signature] = good.split('.');
  const wrong = [
    '',
    '.',
    '..',
    'token',
    'a.b.c',
    `${header}.${payload}`,
    `${good}.x`,
    `${header}..${signature}`,
    'é.é.é',
  ];
  wrong.push(
    `${encode([])}.${payload}.${signature}`,
    `${header}.${encode([])}.${signature}`,
    `${header}.${encode('x')}.x`,
  );
  wrong.push(`${good.slice(0, 20)}\0${good.slice(20)}`, `${header}.${payload}.${'a'.repeat(16_384)}`);
  for (const alg of ['none', 'HS256', 'HS512', 'RSA1_5', 'dir', '', 7])
    wrong.push(`${encode({ alg })}.${payload}.${signature}`);
  wrong.push(`${encode({ alg: 'ES256', crit: ['exp'] })}.${payload}.${signature}`);
  for (const text of wrong) assert.equal(typeof readToken(text), 'string', text.slice(0, 80));
  fc.assert(fc.property(fc.string(), (text) => typeof readToken(text) === 'string'));
  fc.assert(fc.property(fc.json(), (json) => typeof readToken(`${base64url.encode(json)}.${payload}.x`) === 'string'));
});

test('issuer, subject and audience are texts', async () => {
  const [header, , signature] = (await sign({}, key)).split('.');
  const read = (claims: unknown) => readToken(`${header}.${encode(claims)}.${signature}`);
  for (const claims of [{}, { iss: 'a', sub: 'b', aud: 'c' }, { aud: ['c', 'd'] }, { aud: [] }]) {
    assert.equal(typeof read(claims), 'object', JSON.stringify(claims));
  }
  for (const odd of [null, 7, true, {}, ['a'], [['a']], [7]]) {
    assert.equal(read({ iss: odd }), '"iss" in the token is not text');
    assert.equal(read({ sub: odd }), '"sub" in the token is not text');
  }
  for (const odd of [7, true, {}, [['a']], ['a', 7], [null]]) {
    assert.equal(read({ aud: odd }), '"aud" in the token is not text');
  }
});

test('every algorithm that is allowed works', async () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const curves: Record<string, string> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };
  for (const alg of ALGORITHMS) {
    const namedCurve = curves[alg];
    const pair = namedCurve
      ? generateKeyPairSync('ec', { namedCurve })
      : /^.S/.test(alg)
        ? rsa
        : generateKeyPairSync('ed25519');
    const [read] = readKeySet({ keys: [pair.publicKey.export({ format: 'jwk' })] }) ?? [];
    if (typeof read !== 'object') return assert.fail(`${alg}: ${read}`);
    assert.ok(read.algorithms.includes(alg), alg);
    assert.ok(await isSignedWith(await sign({}, { kid: 'any', ...pair }, { alg }), read), alg);
  }
});

test('a signature holds for its own text and key alone', async () => {
  const text = await sign({ sub: 'somebody' }, key);
  const held = { id: 'one', algorithms: ['ES256'], key: key.publicKey };
  assert.ok(await isSignedWith(text, held));
  assert.ok(!(await isSignedWith(text, { ...held, algorithms: ['ES384'] })));
  assert.ok(!(await isSignedWith(text, { ...held, key: newKey('one').publicKey })));
  const [header, payload, signature = ''] = text.split('.');
  for (const bad of [
    '',
    'AAAA',
    '!',
    `${signature}AA`,
    signature.slice(4),
    `B${signature.slice(1)}`,
    `A${signature.slice(1)}`,
  ]) {
    if (bad !== signature) assert.ok(!(await isSignedWith(`${header}.${payload}.${bad}`, held)), bad);
  }
});
