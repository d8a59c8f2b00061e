import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { JWTPayload } from 'jose';
import { Identity_ClaimMatchSchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { findMismatchedClaim } from './claim-match.ts';

type Init = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const SERVER = 'https://wharf.example.com';
const ISSUER = 'https://issuer.example.com';
const exact = {
  iss: { case: 'issuer', value: ISSUER },
  sub: { case: 'subject', value: 'alice' },
} as const satisfies Init;
const token = { iss: ISSUER, sub: 'alice', aud: SERVER };

const mismatchOf = (init: Init, claims: JWTPayload, defaultAudience = SERVER) =>
  findMismatchedClaim(create(Identity_ClaimMatchSchema, init), claims, defaultAudience);

test('exact issuer, subject and audience', () => {
  assert.equal(mismatchOf(exact, token), undefined);
  assert.equal(mismatchOf(exact, { ...token, iss: `${ISSUER}/` }), 'iss');
  assert.equal(mismatchOf(exact, { ...token, sub: 'Alice' }), 'sub');
  assert.equal(mismatchOf(exact, { ...token, aud: `${SERVER}/` }), 'aud');
  assert.equal(mismatchOf(exact, { ...token, aud: ['other', SERVER] }), undefined);
  assert.equal(
    mismatchOf({ ...exact, aud: { case: 'audience', value: 'sts' } }, { ...token, aud: ['a', 'sts'] }),
    undefined,
  );
  // An identity that names another audience does not accept tokens for this server.
  assert.equal(mismatchOf({ ...exact, aud: { case: 'audience', value: 'sts' } }, token), 'aud');
});

test('claims that are absent, empty or of another type never match', () => {
  for (const odd of [undefined, '', null, 7, true, {}, [ISSUER]] as never[]) {
    assert.equal(mismatchOf(exact, { ...token, iss: odd }), 'iss');
    assert.equal(mismatchOf({ ...exact, iss: { case: 'issuerPattern', value: '.*' } }, { ...token, iss: odd }), 'iss');
    assert.equal(mismatchOf({ ...exact, sub: { case: 'subjectPattern', value: '.*' } }, { ...token, sub: odd }), 'sub');
  }
  for (const odd of [undefined, '', null, 7, {}, [], [7], [[SERVER]], { 0: SERVER }] as never[]) {
    assert.equal(mismatchOf(exact, { ...token, aud: odd }), 'aud');
    assert.equal(
      mismatchOf({ ...exact, aud: { case: 'audiencePattern', value: '.*' } }, { ...token, aud: odd }),
      'aud',
    );
  }
  assert.equal(mismatchOf({ ...exact, aud: { case: 'audience', value: '' } }, { ...token, aud: '' }), 'aud');
  assert.equal(mismatchOf(exact, { ...token, aud: '' }, ''), 'aud');
});

test('an identity without issuer or subject matches no token', () => {
  assert.equal(mismatchOf({ sub: exact.sub }, token), 'iss');
  assert.equal(mismatchOf({ iss: exact.iss }, token), 'sub');
  assert.equal(mismatchOf({}, {}), 'iss');
});

test('both issuer names of Google are the same issuer', () => {
  const names = ['accounts.google.com', 'https://accounts.google.com'];
  for (const value of names) {
    for (const iss of names)
      assert.equal(mismatchOf({ ...exact, iss: { case: 'issuer', value } }, { ...token, iss }), undefined);
  }
});

test('patterns match the whole claim', () => {
  const pattern = {
    iss: { case: 'issuerPattern', value: 'https://[a-z]+\\.example\\.com' },
    sub: { case: 'subjectPattern', value: 'foo|ali.*' },
    aud: { case: 'audiencePattern', value: 'https://wharf\\..*' },
    claimPatterns: { ref: 'refs/heads/.*' },
  } as const satisfies Init;
  const good = { ...token, ref: 'refs/heads/main' };
  assert.equal(mismatchOf(pattern, good), undefined);
  assert.equal(mismatchOf(pattern, { ...good, iss: 'https://issuer.example.com.evil' }), 'iss');
  assert.equal(mismatchOf(pattern, { ...good, sub: 'xfoo' }), 'sub');
  assert.equal(mismatchOf(pattern, { ...good, sub: 'foox' }), 'sub');
  assert.equal(mismatchOf(pattern, { ...good, aud: ['x', 'xhttps://wharf.x'] }), 'aud');
  assert.equal(mismatchOf(pattern, { ...good, ref: 'refs/tags/refs/heads/main' }), 'ref');
});

test('other claims are compared as strings, with any element of a list, and without paths', () => {
  const mismatchWith = (claims: Record<string, string>, value: unknown, name = 'c') =>
    mismatchOf({ ...exact, claims }, { ...token, [name]: value });
  assert.equal(mismatchWith({ c: 'x' }, 'x'), undefined);
  assert.equal(mismatchWith({ c: 'true' }, true), undefined);
  assert.equal(mismatchWith({ c: '12.5' }, 12.5), undefined);
  assert.equal(mismatchWith({ c: 'x' }, ['y', 'x']), undefined);
  assert.equal(mismatchWith({ c: '7' }, ['x', 7]), undefined);
  assert.equal(mismatchWith({ 'a.b': 'x' }, 'x', 'a.b'), undefined);
  assert.equal(mismatchWith({ 'a.b': 'x' }, { b: 'x' }, 'a'), 'a.b');
  for (const odd of [undefined, null, {}, [['x']], 'X', 'x ', [{ x: 'x' }]])
    assert.equal(mismatchWith({ c: 'x' }, odd), 'c');
  assert.equal(mismatchWith({ c: 'null' }, null), 'c');
  // Inherited properties are not claims.
  assert.equal(mismatchWith({ constructor: 'x' }, 'x'), 'constructor');
  assert.equal(mismatchOf({ ...exact, claimPatterns: { toString: '.*' } }, token), 'toString');
});

test('a malicious pattern and a long subject do not take long', () => {
  const start = performance.now();
  for (const sub of [`${'a'.repeat(1000)}!`, 'a'.repeat(15_000)]) {
    assert.equal(mismatchOf({ ...exact, sub: { case: 'subjectPattern', value: '(a+)+$' } }, { ...token, sub }), 'sub');
  }
  assert.ok(performance.now() - start < 200);
});

const text = fc.string({ minLength: 1, maxLength: 20 });
const quote = (plain: string): string => plain.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

test('a token matches when it has all required claims, and otherwise the first mismatch is returned', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^c[a-z]{1,5}$/), { minLength: 1, maxLength: 5 });
  const issuer = fc.domain().map((host) => `https://${host}`);
  const cases = fc.record({ iss: issuer, sub: text, aud: text, names, value: text, pattern: fc.boolean() });
  fc.assert(
    fc.property(cases, text, ({ iss, sub, aud, names, value, pattern }, other) => {
      const claims = Object.fromEntries(names.map((name) => [name, value]));
      const patterns = Object.fromEntries(names.map((name) => [name, quote(value)]));
      const match: Init = pattern
        ? {
            iss: { case: 'issuerPattern', value: quote(iss) },
            sub: { case: 'subjectPattern', value: quote(sub) },
            aud: { case: 'audiencePattern', value: quote(aud) },
            claimPatterns: patterns,
          }
        : {
            iss: { case: 'issuer', value: iss },
            sub: { case: 'subject', value: sub },
            aud: { case: 'audience', value: aud },
            claims,
          };
      const good: JWTPayload = { iss, sub, aud: [other, aud], ...claims, unrelated: other };
      assert.equal(mismatchOf(match, good), undefined);
      for (const name of ['iss', 'sub', 'aud', ...names]) {
        const { [name]: _removed, ...without } = good;
        assert.equal(mismatchOf(match, without), name);
        if (other !== String(name === 'aud' ? aud : good[name]))
          assert.equal(mismatchOf(match, { ...good, [name]: other }), name);
      }
    }),
  );
});
