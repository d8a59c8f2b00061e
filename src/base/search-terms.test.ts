import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partsOf, wordsIn } from './search-terms.ts';

test('words stand between spaces, parts between anything that is no letter or digit', () => {
  assert.deepEqual(wordsIn('  py3-Django\tOpenSSL '), ['py3-django', 'openssl']);
  assert.deepEqual(partsOf('org.Apache:commons-lang3'), ['org', 'apache', 'commons', 'lang3']);
  assert.deepEqual(partsOf('Straße_ß'), ['straße', 'ß']);
  for (const nothing of ['', ' ', '--']) assert.deepEqual(partsOf(nothing), []);
});
