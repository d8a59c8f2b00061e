import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createRowCache, type RowCache } from './row-cache.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

describe('a row cache', () => {
  let version: number | undefined = 1;
  let versionReads = 0;
  const newCache = () =>
    createRowCache(() => {
      versionReads++;
      return version;
    });

  it('returns cached objects, by kind and key', () => {
    const cache = newCache();
    cache.put(cache.epoch(), 'repo', 'a', 'app');
    assert.equal(cache.get('repo', 'a'), 'app');
    assert.equal(cache.get('group', 'a'), undefined);
    assert.equal(cache.get('repo', 'b'), undefined);
  });

  it('removes rows that changed, and all rows when another process wrote or that is unknown', () => {
    const cache = newCache();
    for (const key of ['a', 'b']) cache.put(cache.epoch(), 'repo', key, key);
    cache.invalidate(new Set(['a']));
    assert.equal(cache.get('repo', 'a'), undefined);
    assert.equal(cache.get('repo', 'b'), 'b');
    version = 2;
    cache.revalidate();
    assert.equal(cache.get('repo', 'b'), undefined);
    version = undefined;
    cache.revalidate();
    cache.put(cache.epoch(), 'repo', 'b', 'b');
    cache.revalidate();
    assert.equal(cache.get('repo', 'b'), undefined);
  });

  it('does not cache a row that was read before a change', () => {
    const cache = newCache();
    const epoch = cache.epoch();
    cache.invalidate(new Set(['other']));
    cache.put(epoch, 'repo', 'a', 'old');
    assert.equal(cache.get('repo', 'a'), undefined);
  });

  it('checks for writes of other processes once in each turn of the event loop', async () => {
    const cache = newCache();
    cache.get('repo', 'a');
    const before = versionReads;
    cache.get('repo', 'a');
    assert.equal(versionReads, before);
    await nextTurn();
    cache.get('repo', 'a');
    assert.equal(versionReads, before + 1);
  });

  it('has a limited size', () => {
    const cache = newCache();
    for (let i = 0; i < 3_000; i++) cache.put(cache.epoch(), 'repo', `${i}`, i);
    assert.equal(cache.get('repo', '0'), undefined);
    assert.equal(cache.get('repo', '2999'), 2999);
  });
});

describe('the row cache of SQLite', () => {
  let directory: string;
  let store: Store;
  let cache: RowCache;
  const path = (): string => join(directory, 'test.db');
  const run = (sql: string, ...keys: string[]) => store.write((tx) => tx.run(sql, ...keys));
  /** Reads as a request does: from the cache, or else from the table. */
  const read = async (key: string): Promise<unknown> => {
    const cached = cache.get('item', key);
    if (cached !== undefined) return cached;
    const epoch = cache.epoch();
    const row = await store.reader.get<{ body: string }>('SELECT body FROM item WHERE key = $1', key);
    if (row) cache.put(epoch, 'item', key, row.body);
    return row?.body;
  };
  const isCached = (key: string): boolean => cache.get('item', key) !== undefined;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'wharf-row-cache-'));
    const plain = await openSqlite(path());
    store = plain;
    await run('CREATE TABLE item (key TEXT PRIMARY KEY, body TEXT NOT NULL)');
    store = plain.withRowCache({ item: 'key' });
    cache = store.reader.rowCache ?? assert.fail('the store has no row cache');
    for (const key of ['a', 'b']) await run('INSERT INTO item (key, body) VALUES ($1, $2)', key, 'old');
    for (const key of ['a', 'b']) await read(key);
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  it('keeps a row when other rows change', async () => {
    await run('UPDATE item SET body = $1 WHERE key = $2', 'new', 'b');
    await run('INSERT INTO item (key, body) VALUES ($1, $2)', 'c', 'new');
    assert.equal(isCached('a'), true);
    assert.equal(await read('b'), 'new');
  });

  it('removes rows that are updated, upserted or deleted', async () => {
    await run('UPDATE item SET body = $1 WHERE key = $2', 'updated', 'a');
    assert.equal(await read('a'), 'updated');
    await run(
      'INSERT INTO item (key, body) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET body = excluded.body',
      'a',
      'put',
    );
    assert.equal(await read('a'), 'put');
    await run('DELETE FROM item');
    assert.equal(await read('a'), undefined);
    assert.equal(await read('b'), undefined);
  });

  it('returns committed data only, also while a transaction is open', async () => {
    await store.write(async (tx) => {
      await tx.run('UPDATE item SET body = $1 WHERE key = $2', 'new', 'a');
      assert.equal(await read('a'), 'old');
      await nextTurn();
      assert.equal(await read('a'), 'old');
    });
    assert.equal(await read('a'), 'new');
  });

  it('does not cache a row that was read before a commit', async () => {
    await run('UPDATE item SET body = $1 WHERE key = $2', 'older', 'a');
    const epoch = cache.epoch();
    const row = await store.reader.get<{ body: string }>('SELECT body FROM item WHERE key = $1', 'a');
    await run('UPDATE item SET body = $1 WHERE key = $2', 'newer', 'a');
    cache.put(epoch, 'item', 'a', row?.body ?? '');
    assert.equal(await read('a'), 'newer');
  });

  it('returns the old row after a rollback', async () => {
    await assert.rejects(
      store.write(async (tx) => {
        await tx.run('UPDATE item SET body = $1 WHERE key = $2', 'never', 'a');
        throw new Error('no');
      }),
    );
    assert.equal(await read('a'), 'old');
  });

  it('removes all rows when another connection has written', async () => {
    const other = await openSqlite(path());
    await other.write((tx) => tx.run("UPDATE item SET body = 'theirs' WHERE key = 'a'"));
    await other.close();
    cache.revalidate();
    assert.equal(await read('a'), 'theirs');
    assert.equal(isCached('b'), false);
  });

  it('is not available in a transaction', async () => {
    await store.write((tx) => assert.equal(tx.rowCache, undefined));
  });
});
