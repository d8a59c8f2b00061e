import assert from 'node:assert/strict';
import { test } from 'node:test';
import { depthOf, isUid } from '../../../base/uid.ts';
import { stableUid } from './stable-uid.ts';

test('the uid of an issuer and a subject is a root uid that never changes', () => {
  const uid = stableUid('https://issuer.example.com', 'alice');
  assert.ok(isUid(uid) && depthOf(uid) === 0);
  // Identities are stored under it: with another value, registered people could not log in.
  assert.equal(uid, '30fba917c8d7e383996d31f1fad9b1202a7e9233');
});

test('different issuers, subjects and splits of the same text have different uids', () => {
  const pairs = [
    ['https://a.example', 'alice'],
    ['https://a.example', 'bob'],
    ['https://b.example', 'alice'],
    ['https://a.exampl', 'ealice'],
    ['https://a.example5:alice', ''],
    ['', 'https://a.examplealice'],
    ['https://a.example', 'Alice'],
    ['https://a.example/', 'alice'],
  ] as const;
  assert.equal(new Set(pairs.map(([issuer, subject]) => stableUid(issuer, subject))).size, pairs.length);
});

test('both names of the Google issuer give the same uid', () => {
  assert.equal(stableUid('accounts.google.com', '1'), stableUid('https://accounts.google.com', '1'));
});
