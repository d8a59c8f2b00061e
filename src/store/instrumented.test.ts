import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notFound } from '../base/errors.ts';
import { unavailable } from './errors.ts';
import { instrumentStore } from './instrumented.ts';
import type { Row, Store, Transaction } from './store.ts';

const transaction = { isOnlyWriter: true } as Transaction;

/** A store that answers like SQLite (at once) or like PostgreSQL (later), and what is observed of it. */
function observed(answer: () => Row[] | Promise<Row[]>) {
  const seen: [operation: string, outcome: string][] = [];
  const store: Store = {
    reader: { all: answer as Store['reader']['all'], get: () => undefined, binaryCollation: '' },
    write: async (work) => work(transaction),
    ping: async () => {},
    close: async () => {},
  };
  const observeDatabase = (operation: string, outcome: string, seconds: number): void => {
    assert.ok(seconds >= 0 && seconds < 60);
    seen.push([operation, outcome]);
  };
  return { seen, store: instrumentStore(store, { observeDatabase }) };
}

test('an answer that comes at once is passed on at once', () => {
  const { store, seen } = observed(() => [{ n: 1 }]);
  assert.deepEqual(store.reader.all('SELECT 1'), [{ n: 1 }]);
  assert.equal(store.reader.get('SELECT 1'), undefined);
  assert.deepEqual(seen, [
    ['read', 'ok'],
    ['read', 'ok'],
  ]);
});

test('a failure is observed and passed on, at once or later', async () => {
  const now = observed(() => {
    throw new Error('locked');
  });
  assert.throws(() => now.store.reader.all('SELECT 1'), /locked/);
  assert.deepEqual(now.seen, [['read', 'error']]);

  const later = observed(() => Promise.reject(new Error('gone')));
  await assert.rejects(async () => later.store.reader.all('SELECT 1'), /gone/);
  assert.deepEqual(later.seen, [['read', 'error']]);
});

test('a transaction that our own rules roll back is not the fault of the database', async () => {
  const { store, seen } = observed(() => []);
  assert.equal(await store.write(() => 5), 5);
  await assert.rejects(
    store.write(() => {
      throw notFound('group', 'x');
    }),
    /Not found/,
  );
  await assert.rejects(
    store.write(() => {
      throw unavailable('the database is closed');
    }),
    /closed/,
  );
  assert.deepEqual(seen, [
    ['write', 'ok'],
    ['write', 'refused'],
    ['write', 'error'],
  ]);
});
