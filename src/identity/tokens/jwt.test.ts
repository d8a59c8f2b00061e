import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { base64url, type JWTPayload } from 'jose';
import { newKey, sign } from '../../../test/support/issuer.ts';
import { ALGORITHMS, readKeySet } from '../../base/jwks.ts';
import { isSignedWith, parseJwt, validityPeriodProblem } from './jwt.ts';

const NOW = 2_000_000_000;
const key = newKey('one');
const encode = (value: unknown): string => base64url.encode(JSON.stringify(value));

test('the validity period has a leeway of one minute at both ends', () => {
  const problemOf = (changes: JWTPayload) =>
    validityPeriodProblem({ exp: NOW + 600, ...changes }, NOW * 1000, 3_600_000);
  assert.equal(problemOf({}), undefined);
  assert.equal(problemOf({ exp: NOW - 59 }), undefined);
  assert.equal(problemOf({ exp: NOW - 60 }), 'the token has expired; get a new one');
  assert.equal(problemOf({ exp: NOW - 59.5, iat: NOW - 0.5 }), undefined);
  assert.equal(problemOf({ nbf: NOW + 60 }), undefined);
  assert.equal(problemOf({ nbf: NOW + 61 }), 'the token is not valid yet ("nbf"); check the clock of its issuer');
  assert.equal(problemOf({ iat: NOW + 60 }), undefined);
  assert.equal(
    problemOf({ iat: NOW + 61 }),
    'the token was issued in the future ("iat"); check the clock of its issuer',
  );
});

test('a token must not be valid for longer than the maximum', () => {
  const problemOf = (claims: JWTPayload) => validityPeriodProblem(claims, NOW * 1000, 48 * 3_600_000);
  const TWO_DAYS = 48 * 3600;
  const tooLong = 'the token is valid for longer than 2 days; get one with an earlier "exp"';
  assert.equal(problemOf({ exp: NOW + TWO_DAYS }), undefined);
  assert.equal(problemOf({ exp: NOW + TWO_DAYS, iat: NOW }), undefined);
  assert.equal(problemOf({ exp: NOW + TWO_DAYS + 61 }), tooLong);
  assert.equal(problemOf({ exp: NOW + 100, iat: NOW - TWO_DAYS }), tooLong);
  // An issuer whose clock is ahead.
  assert.equal(problemOf({ exp: NOW + 30 + TWO_DAYS, iat: NOW + 30 }), undefined);
  assert.equal(problemOf({ exp: 1e300, iat: NOW }), tooLong);
  assert.match(validityPeriodProblem({ exp: NOW + 7261 }, NOW * 1000, 7_200_000) ?? '', /longer than 2 hours/);
});

test('control characters in the issuer, subject or audience are refused', async () => {
  for (const [claim, value] of [
    ['iss', 'https://a.example\0'],
    ['sub', 'a\nb'],
    ['aud', ['a', '\u0085']],
  ] as const) {
    assert.match(String(parseJwt(await sign({ [claim]: value }, key))), new RegExp(`"${claim}" in the token contains`));
  }
});

test('times of another type are invalid', () => {
  const problemOf = (claims: unknown) => validityPeriodProblem(claims as JWTPayload, NOW * 1000, 3_600_000);
  assert.equal(problemOf({}), 'the token has no expiry time ("exp"); get one that has');
  for (const odd of ['2100000000', null, true, {}, [], Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.equal(problemOf({ exp: odd }), 'the token has no expiry time ("exp"); get one that has');
    assert.equal(
      problemOf({ exp: NOW, nbf: odd }),
      'the token is not valid yet ("nbf"); check the clock of its issuer',
    );
    assert.equal(
      problemOf({ exp: NOW, iat: odd }),
      'the token was issued in the future ("iat"); check the clock of its issuer',
    );
  }
});

test('a token is parsed', async () => {
  const token = parseJwt(await sign({ sub: 'alice' }, key));
  assert.deepEqual(token, { header: { alg: 'ES256', kid: 'one' }, claims: { sub: 'alice' } });
  const anonymous = parseJwt(await sign({}, key, { kid: 7 as never }));
  assert.deepEqual(anonymous, { header: { alg: 'ES256', kid: undefined }, claims: {} });
});

test('text that is not a token gives an error message', async () => {
  const good = await sign({ sub: 'alice' }, key);
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
  for (const text of wrong) assert.equal(typeof parseJwt(text), 'string', text.slice(0, 80));
  fc.assert(fc.property(fc.string(), (text) => typeof parseJwt(text) === 'string'));
  fc.assert(fc.property(fc.json(), (json) => typeof parseJwt(`${base64url.encode(json)}.${payload}.x`) === 'string'));
});

test('issuer, subject and audience must be strings', async () => {
  const [header, , signature] = (await sign({}, key)).split('.');
  const read = (claims: unknown) => parseJwt(`${header}.${encode(claims)}.${signature}`);
  for (const claims of [{}, { iss: 'a', sub: 'b', aud: 'c' }, { aud: ['c', 'd'] }, { aud: [] }]) {
    assert.equal(typeof read(claims), 'object', JSON.stringify(claims));
  }
  for (const odd of [null, 7, true, {}, ['a'], [['a']], [7]]) {
    assert.equal(read({ iss: odd }), '"iss" in the token has the wrong type; it must be a string');
    assert.equal(read({ sub: odd }), '"sub" in the token has the wrong type; it must be a string');
  }
  for (const odd of [7, true, {}, [['a']], ['a', 7], [null]]) {
    assert.equal(read({ aud: odd }), '"aud" in the token has the wrong type; it must be a string');
  }
});

test('every supported algorithm works', async () => {
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

test('a signature is valid only for its text and key', async () => {
  const text = await sign({ sub: 'alice' }, key);
  const publicKey = { id: 'one', algorithms: ['ES256'], key: key.publicKey };
  assert.ok(await isSignedWith(text, publicKey));
  assert.ok(!(await isSignedWith(text, { ...publicKey, algorithms: ['ES384'] })));
  assert.ok(!(await isSignedWith(text, { ...publicKey, key: newKey('one').publicKey })));
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
    if (bad !== signature) assert.ok(!(await isSignedWith(`${header}.${payload}.${bad}`, publicKey)), bad);
  }
});
