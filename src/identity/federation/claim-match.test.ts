import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { JWTPayload } from 'jose';
import { Identity_ClaimMatchSchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { mismatch } from './claim-match.ts';

type Init = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const US = 'https://wharf.example.com';
const ISSUER = 'https://issuer.example.com';
const exact = {
  iss: { case: 'issuer', value: ISSUER },
  sub: { case: 'subject', value: 'somebody' },
} as const satisfies Init;
const token = { iss: ISSUER, sub: 'somebody', aud: US };

const judge = (init: Init, claims: JWTPayload, us = US) =>
  mismatch(create(Identity_ClaimMatchSchema, init), claims, us);

test('issuer, subject and audience, exact', () => {
  assert.equal(judge(exact, token), undefined);
  assert.equal(judge(exact, { ...token, iss: `${ISSUER}/` }), 'iss');
  assert.equal(judge(exact, { ...token, sub: 'Somebody' }), 'sub');
  assert.equal(judge(exact, { ...token, aud: `${US}/` }), 'aud');
  assert.equal(judge(exact, { ...token, aud: ['other', US] }), undefined);
  assert.equal(
    judge({ ...exact, aud: { case: 'audience', value: 'sts' } }, { ...token, aud: ['a', 'sts'] }),
    undefined,
  );
  // An identity that names another audience does not take tokens for us.
  assert.equal(judge({ ...exact, aud: { case: 'audience', value: 'sts' } }, token), 'aud');
});

test('claims that are absent, empty or of another type match nothing', () => {
  for (const odd of [undefined, '', null, 7, true, {}, [ISSUER]] as never[]) {
    assert.equal(judge(exact, { ...token, iss: odd }), 'iss');
    assert.equal(judge({ ...exact, iss: { case: 'issuerPattern', value: '.*' } }, { ...token, iss: odd }), 'iss');
    assert.equal(judge({ ...exact, sub: { case: 'subjectPattern', value: '.*' } }, { ...token, sub: odd }), 'sub');
  }
  for (const odd of [undefined, '', null, 7, {}, [], [7], [[US]], { 0: US }] as never[]) {
    assert.equal(judge(exact, { ...token, aud: odd }), 'aud');
    assert.equal(judge({ ...exact, aud: { case: 'audiencePattern', value: '.*' } }, { ...token, aud: odd }), 'aud');
  }
  assert.equal(judge({ ...exact, aud: { case: 'audience', value: '' } }, { ...token, aud: '' }), 'aud');
  assert.equal(judge(exact, { ...token, aud: '' }, ''), 'aud');
});

test('an identity that does not say issuer and subject matches nobody', () => {
  assert.equal(judge({ sub: exact.sub }, token), 'iss');
  assert.equal(judge({ iss: exact.iss }, token), 'sub');
  assert.equal(judge({}, {}), 'iss');
});

test('Google is Google by either of its names', () => {
  const names = ['accounts.google.com', 'https://accounts.google.com'];
  for (const value of names) {
    for (const iss of names)
      assert.equal(judge({ ...exact, iss: { case: 'issuer', value } }, { ...token, iss }), undefined);
  }
});

test('patterns match the whole claim', () => {
  const pattern = {
    iss: { case: 'issuerPattern', value: 'https://[a-z]+\\.example\\.com' },
    sub: { case: 'subjectPattern', value: 'foo|some.*' },
    aud: { case: 'audiencePattern', value: 'https://wharf\\..*' },
    claimPatterns: { ref: 'refs/heads/.*' },
  } as const satisfies Init;
  const good = { ...token, ref: 'refs/heads/main' };
  assert.equal(judge(pattern, good), undefined);
  assert.equal(judge(pattern, { ...good, iss: 'https://issuer.example.com.evil' }), 'iss');
  assert.equal(judge(pattern, { ...good, sub: 'xfoo' }), 'sub');
  assert.equal(judge(pattern, { ...good, sub: 'foox' }), 'sub');
  assert.equal(judge(pattern, { ...good, aud: ['x', 'xhttps://wharf.x'] }), 'aud');
  assert.equal(judge(pattern, { ...good, ref: 'refs/tags/refs/heads/main' }), 'ref');
});

test('further claims compare as text; one of a list is enough; paths are not followed', () => {
  const wants = (claims: Record<string, string>, value: unknown, name = 'c') =>
    judge({ ...exact, claims }, { ...token, [name]: value });
  assert.equal(wants({ c: 'x' }, 'x'), undefined);
  assert.equal(wants({ c: 'true' }, true), undefined);
  assert.equal(wants({ c: '12.5' }, 12.5), undefined);
  assert.equal(wants({ c: 'x' }, ['y', 'x']), undefined);
  assert.equal(wants({ c: '7' }, ['x', 7]), undefined);
  assert.equal(wants({ 'a.b': 'x' }, 'x', 'a.b'), undefined);
  assert.equal(wants({ 'a.b': 'x' }, { b: 'x' }, 'a'), 'a.b');
  for (const odd of [undefined, null, {}, [['x']], 'X', 'x ', [{ x: 'x' }]]) assert.equal(wants({ c: 'x' }, odd), 'c');
  assert.equal(wants({ c: 'null' }, null), 'c');
  // What every object inherits is no claim.
  assert.equal(wants({ constructor: 'x' }, 'x'), 'constructor');
  assert.equal(judge({ ...exact, claimPatterns: { toString: '.*' } }, token), 'toString');
});

test('a hostile pattern and a long subject take no time', () => {
  const start = performance.now();
  for (const sub of [`${'a'.repeat(1000)}!`, 'a'.repeat(15_000)]) {
    assert.equal(judge({ ...exact, sub: { case: 'subjectPattern', value: '(a+)+$' } }, { ...token, sub }), 'sub');
  }
  assert.ok(performance.now() - start < 200);
});

const text = fc.string({ minLength: 1, maxLength: 20 });
const quote = (plain: string): string => plain.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

test('a token matches when it has every claim that is asked for, and the first other one is named', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^c[a-z]{1,5}$/), { minLength: 1, maxLength: 5 });
  const world = fc.record({ iss: text, sub: text, aud: text, names, value: text, pattern: fc.boolean() });
  fc.assert(
    fc.property(world, text, ({ iss, sub, aud, names, value, pattern }, other) => {
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
      assert.equal(judge(match, good), undefined);
      for (const name of ['iss', 'sub', 'aud', ...names]) {
        const { [name]: _removed, ...without } = good;
        assert.equal(judge(match, without), name);
        if (other !== String(name === 'aud' ? aud : good[name]))
          assert.equal(judge(match, { ...good, [name]: other }), name);
      }
    }),
  );
});
