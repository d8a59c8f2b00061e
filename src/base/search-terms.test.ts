import assert from 'node:assert/strict';
import { test } from 'node:test';
import { splitNameParts, splitWords } from './search-terms.ts';

test('words are separated by spaces, parts by any character that is not a letter or digit', () => {
  assert.deepEqual(splitWords('  py3-Django\tOpenSSL '), ['py3-django', 'openssl']);
  assert.deepEqual(splitNameParts('org.Apache:commons-lang3'), ['org', 'apache', 'commons', 'lang3']);
  assert.deepEqual(splitNameParts('Straße_ß'), ['straße', 'ß']);
  for (const name of ['', ' ', '--']) assert.deepEqual(splitNameParts(name), []);
});
