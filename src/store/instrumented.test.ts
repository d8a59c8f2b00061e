import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notFound } from '../base/errors.ts';
import { unavailable } from './errors.ts';
import { instrumentStore } from './instrumented.ts';
import type { Row, Store, Transaction } from './store.ts';

const transaction = { isOnlyWriter: true } as Transaction;

/** A store whose reads return `result()`: rows like SQLite, or a promise like PostgreSQL; and what it observes. */
function observedStore(result: () => Row[] | Promise<Row[]>) {
  const observed: [operation: string, outcome: string][] = [];
  const store: Store = {
    reader: { all: result as Store['reader']['all'], get: () => undefined, binaryCollation: '' },
    write: async (work) => work(transaction),
    snapshot: (work) => work(store.reader),
    ping: async () => {},
    size: async () => 0,
    close: async () => {},
  };
  const observeDatabase = (operation: string, outcome: string, seconds: number): void => {
    assert.ok(seconds >= 0 && seconds < 60);
    observed.push([operation, outcome]);
  };
  return { observed, store: instrumentStore(store, { observeDatabase }) };
}

test('a result that is not a promise is returned as it is', () => {
  const { store, observed } = observedStore(() => [{ n: 1 }]);
  assert.deepEqual(store.reader.all('SELECT 1'), [{ n: 1 }]);
  assert.equal(store.reader.get('SELECT 1'), undefined);
  assert.deepEqual(observed, [
    ['read', 'ok'],
    ['read', 'ok'],
  ]);
});

test('an error is observed and thrown, by a function or a promise', async () => {
  const throwing = observedStore(() => {
    throw new Error('locked');
  });
  assert.throws(() => throwing.store.reader.all('SELECT 1'), /locked/);
  assert.deepEqual(throwing.observed, [['read', 'error']]);

  const rejecting = observedStore(() => Promise.reject(new Error('lost')));
  await assert.rejects(async () => rejecting.store.reader.all('SELECT 1'), /lost/);
  assert.deepEqual(rejecting.observed, [['read', 'error']]);
});

test('a transaction that the server refuses is not counted as an error of the database', async () => {
  const { store, observed } = observedStore(() => []);
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
  assert.deepEqual(observed, [
    ['write', 'ok'],
    ['write', 'refused'],
    ['write', 'error'],
  ]);
});
