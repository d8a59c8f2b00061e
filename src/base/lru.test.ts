import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLru } from './lru.ts';

const keysIn = <V extends NonNullable<unknown>>(lru: { get(key: string): V | undefined }, keys: string): string =>
  [...keys].filter((key) => lru.get(key) !== undefined).join('');

test('the least recently used entry is evicted', () => {
  const lru = createLru<string, number>(3);
  for (const key of 'abc') lru.set(key, 1);
  lru.get('a');
  lru.set('d', 1);
  assert.equal(keysIn(lru, 'abcd'), 'acd');
});

test('setting a key again counts as a use and adds no entry', () => {
  const lru = createLru<string, number>(2);
  for (const key of 'aba') lru.set(key, 1);
  lru.set('a', 2);
  lru.set('c', 1);
  assert.equal(keysIn(lru, 'abc'), 'ac');
  assert.equal(lru.get('a'), 2);
});

test('falsy values are stored', () => {
  const lru = createLru<string, number | boolean>(2);
  lru.set('a', 0);
  lru.set('b', false);
  assert.equal(lru.get('a'), 0);
  assert.equal(lru.get('b'), false);
  lru.delete('a');
  assert.equal(lru.get('a'), undefined);
});

test('deleting an entry at any position keeps the order of the others', () => {
  const lru = createLru<string, number>(4);
  for (const deleted of 'adbc') {
    for (const key of 'abcd') lru.set(key, 1);
    lru.delete(deleted);
    lru.delete('not a key');
    for (const key of 'efg') lru.set(key, 1);
    const youngest = [...'abcd'].filter((key) => key !== deleted).at(-1);
    assert.equal(keysIn(lru, 'abcdefg'), `${youngest}efg`, `without ${deleted}`);
  }
});
