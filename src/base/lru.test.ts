import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLru } from './lru.ts';

const held = <V extends NonNullable<unknown>>(lru: { get(key: string): V | undefined }, keys: string): string =>
  [...keys].filter((key) => lru.get(key) !== undefined).join('');

test('the entry that was not used for longest makes room', () => {
  const lru = createLru<string, number>(3);
  for (const key of 'abc') lru.set(key, 1);
  lru.get('a');
  lru.set('d', 1);
  assert.equal(held(lru, 'abcd'), 'acd');
});

test('writing an entry again is a use, and takes no second place', () => {
  const lru = createLru<string, number>(2);
  for (const key of 'aba') lru.set(key, 1);
  lru.set('a', 2);
  lru.set('c', 1);
  assert.equal(held(lru, 'abc'), 'ac');
  assert.equal(lru.get('a'), 2);
});

test('values that count as false are values', () => {
  const lru = createLru<string, number | boolean>(2);
  lru.set('a', 0);
  lru.set('b', false);
  assert.equal(lru.get('a'), 0);
  assert.equal(lru.get('b'), false);
  lru.delete('a');
  assert.equal(lru.get('a'), undefined);
});

test('entries can go from anywhere, and the order of the others stays', () => {
  const lru = createLru<string, number>(4);
  for (const gone of 'adbc') {
    for (const key of 'abcd') lru.set(key, 1);
    lru.delete(gone);
    lru.delete('never there');
    for (const key of 'efg') lru.set(key, 1);
    const youngest = [...'abcd'].filter((key) => key !== gone).at(-1);
    assert.equal(held(lru, 'abcdefg'), `${youngest}efg`, `without ${gone}`);
  }
});
