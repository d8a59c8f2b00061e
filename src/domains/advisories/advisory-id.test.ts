import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAdvisoryId, newAdvisoryId } from './advisory-id.ts';

test('new ids are valid and distinct', () => {
  const ids = new Set(Array.from({ length: 2000 }, newAdvisoryId));
  assert.equal(ids.size, 2000);
  for (const id of ids) assert.ok(isAdvisoryId(id), id);
  const letters = new Set([...ids].join('').replaceAll(/CGA|-/g, ''));
  assert.equal([...letters].sort().join(''), '23456789cfghjmpqrvwx', 'all letters of the alphabet, and no others');
});

test('refuses invalid ids', () => {
  assert.ok(isAdvisoryId('CGA-2c5g-9xvw-m7q4'));
  for (const text of ['', 'CGA-2c5g-9xvw', 'cga-2c5g-9xvw-m7q4', 'CGA-2C5G-9xvw-m7q4', 'CGA-1c5g-9xvw-m7q4']) {
    assert.ok(!isAdvisoryId(text), text);
  }
  for (const text of ['CGA-2c5g-9xvw-m7q4\n', ' CGA-2c5g-9xvw-m7q4', 'CGA-2c5g-9xvw-m7q4-2c5g', 'CGA-ac5g-9xvw-m7q4']) {
    assert.ok(!isAdvisoryId(text), text);
  }
});
