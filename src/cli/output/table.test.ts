import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tableText } from './table.ts';

const rows = [
  ['a/1', 'short', 'what it is for, at some length'],
  ['a/22', 'a longer name', ''],
];

test('columns are aligned, without trailing spaces', () => {
  assert.equal(
    tableText(['UID', 'NAME', 'DESCRIPTION'], rows),
    'UID   NAME           DESCRIPTION\n' +
      'a/1   short          what it is for, at some length\n' +
      'a/22  a longer name\n',
  );
});

test('on a terminal the widest columns are cut, but never the first', () => {
  assert.equal(
    tableText(['UID', 'NAME', 'DESCRIPTION'], rows, 30),
    'UID   NAME         DESCRIPTION\n' + 'a/1   short        what it is…\n' + 'a/22  a longer n…\n',
  );
  const [, line = ''] = tableText(['UID', 'NAME'], [['f'.repeat(60), 'a longer name']], 20).split('\n');
  assert.equal(line, `${'f'.repeat(60)}  a longe…`);
});

test('an empty table is its header', () => {
  assert.equal(tableText(['UID', 'NAME'], []), 'UID  NAME\n');
});

test('a table can have very many rows', () => {
  const many = Array.from({ length: 200_000 }, (_, n) => [String(n)]);
  assert.equal(tableText(['UID'], many).split('\n').length, 200_002);
});
