import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Names, sinkLookup } from './resolve.ts';

/** A resolver that knows these addresses of every name. */
const knowing = (v4: readonly string[], v6: readonly string[] = []): Names => {
  const answer = async (found: readonly string[]) =>
    found.length > 0 ? [...found] : Promise.reject(new Error('ENODATA'));
  return { resolve4: () => answer(v4), resolve6: () => answer(v6) } as object as Names;
};

const ask = (allowPrivate: boolean, names: Names, all: boolean, hostname = 'name.example') =>
  new Promise<unknown>((resolve, reject) => {
    sinkLookup(allowPrivate, names)(hostname, { all }, (error, found, family) =>
      error ? reject(error) : resolve([found, family]),
    );
  });

test('public addresses are handed to the socket in the form it asks for', async () => {
  const names = knowing(['8.8.8.8'], ['2606:4700::1']);
  const both = [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ];
  assert.deepEqual(await ask(false, names, true), [both, undefined]);
  assert.deepEqual(await ask(false, names, false), ['8.8.8.8', 4]);
  assert.deepEqual(await ask(false, knowing([], ['2606:4700::1']), false), ['2606:4700::1', 6]);
});

test('one private address among several is enough to refuse, and so is none at all', async () => {
  const refused = [knowing(['8.8.8.8', '127.0.0.1']), knowing(['8.8.8.8'], ['fd00::1']), knowing([])];
  for (const names of refused) await assert.rejects(ask(false, names, true), /its host has no public address/);
  await assert.rejects(ask(false, knowing(['8.8.8.8']), true, 'localhost'), /its host has no public address/);
});

test('where private addresses are allowed they are used, and this machine needs no resolver', async () => {
  assert.deepEqual(await ask(true, knowing(['10.0.0.1']), false), ['10.0.0.1', 4]);
  assert.deepEqual(await ask(true, knowing([]), false, 'localhost'), ['127.0.0.1', 4]);
  await assert.rejects(ask(true, knowing([]), false));
});
