import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nearest } from './nearest.ts';

const words = ['listen', 'data', 'database_url', 'tls_cert', 'tls_key', 'org'];

test('a misspelt word has its nearest candidate', () => {
  for (const [word, expected] of [
    ['listn', 'listen'],
    ['lisetn', 'listen'],
    ['datbase_url', 'database_url'],
    ['databaseurl', 'database_url'],
    ['tls_crt', 'tls_cert'],
    ['dta', 'data'],
    ['port', undefined],
    ['zzz', undefined],
    ['', undefined],
  ] as const) {
    assert.equal(nearest(word, words), expected, word);
  }
});

test('a word itself is always its nearest candidate', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1 }), fc.nat(), (candidates, index) => {
      const word = candidates[index % candidates.length] ?? '';
      assert.equal(nearest(word, candidates), word);
    }),
  );
});

test('one swap, deletion or insertion is found among candidates that differ in every letter', () => {
  fc.assert(
    fc.property(fc.nat(7), fc.constantFrom('swap', 'delete', 'insert'), (at, edit) => {
      const word = 'abcdefghi';
      const damaged = {
        swap: word.slice(0, at) + (word[at + 1] ?? '') + (word[at] ?? '') + word.slice(at + 2),
        delete: word.slice(0, at) + word.slice(at + 1),
        insert: `${word.slice(0, at)}x${word.slice(at)}`,
      }[edit];
      assert.equal(nearest(damaged, ['123456789', word, '12345678', '1234567890']), word);
    }),
  );
});
