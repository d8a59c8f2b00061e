import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createRowCache, type RowCache } from './row-cache.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

describe('a memory', () => {
  let version: number | undefined = 1;
  let asked = 0;
  const memoryOf = () =>
    createRowCache(() => {
      asked++;
      return version;
    });

  it('recalls what was kept, by kind', () => {
    const memory = memoryOf();
    memory.put(memory.epoch(), 'repo', 'a', 'app');
    assert.equal(memory.get('repo', 'a'), 'app');
    assert.equal(memory.get('group', 'a'), undefined);
    assert.equal(memory.get('repo', 'b'), undefined);
  });

  it('forgets rows that changed here, and everything when others wrote or nobody can tell', () => {
    const memory = memoryOf();
    for (const key of ['a', 'b']) memory.put(memory.epoch(), 'repo', key, key);
    memory.invalidate(new Set(['a']));
    assert.equal(memory.get('repo', 'a'), undefined);
    assert.equal(memory.get('repo', 'b'), 'b');
    version = 2;
    memory.revalidate();
    assert.equal(memory.get('repo', 'b'), undefined);
    version = undefined;
    memory.revalidate();
    memory.put(memory.epoch(), 'repo', 'b', 'b');
    memory.revalidate();
    assert.equal(memory.get('repo', 'b'), undefined);
  });

  it('keeps nothing that was read before a change', () => {
    const memory = memoryOf();
    const mark = memory.epoch();
    memory.invalidate(new Set(['other']));
    memory.put(mark, 'repo', 'a', 'old');
    assert.equal(memory.get('repo', 'a'), undefined);
  });

  it('looks for changes of others at least once in each turn of the event loop', async () => {
    const memory = memoryOf();
    memory.get('repo', 'a');
    const before = asked;
    memory.get('repo', 'a');
    assert.equal(asked, before);
    await nextTurn();
    memory.get('repo', 'a');
    assert.equal(asked, before + 1);
  });

  it('is bounded', () => {
    const memory = memoryOf();
    for (let i = 0; i < 3_000; i++) memory.put(memory.epoch(), 'repo', `${i}`, i);
    assert.equal(memory.get('repo', '0'), undefined);
    assert.equal(memory.get('repo', '2999'), 2999);
  });
});

describe('the memory of SQLite', () => {
  let directory: string;
  let store: Store;
  let memory: RowCache;
  const path = (): string => join(directory, 'test.db');
  const run = (sql: string, ...keys: string[]) => store.write((tx) => tx.run(sql, ...keys));
  /** As a request reads: from memory, or else from the table. */
  const read = async (key: string): Promise<unknown> => {
    const known = memory.get('item', key);
    if (known !== undefined) return known;
    const mark = memory.epoch();
    const row = await store.reader.get<{ body: string }>('SELECT body FROM item WHERE key = $1', key);
    if (row) memory.put(mark, 'item', key, row.body);
    return row?.body;
  };
  const isKnown = (key: string): boolean => memory.get('item', key) !== undefined;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'wharf-memory-'));
    const plain = await openSqlite(path());
    store = plain;
    await run('CREATE TABLE item (key TEXT PRIMARY KEY, body TEXT NOT NULL)');
    store = plain.withRowCache({ item: 'key' });
    memory = store.reader.rowCache ?? assert.fail('it has none');
    for (const key of ['a', 'b']) await run('INSERT INTO item (key, body) VALUES ($1, $2)', key, 'old');
    for (const key of ['a', 'b']) await read(key);
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  it('outlives changes of other rows', async () => {
    await run('UPDATE item SET body = $1 WHERE key = $2', 'new', 'b');
    await run('INSERT INTO item (key, body) VALUES ($1, $2)', 'c', 'new');
    assert.equal(isKnown('a'), true);
    assert.equal(await read('b'), 'new');
  });

  it('knows of updates, upserts and deletions', async () => {
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

  it('shows what is committed and no more, also to those who read while somebody writes', async () => {
    await store.write(async (tx) => {
      await tx.run('UPDATE item SET body = $1 WHERE key = $2', 'new', 'a');
      assert.equal(await read('a'), 'old');
      await nextTurn();
      assert.equal(await read('a'), 'old');
    });
    assert.equal(await read('a'), 'new');
  });

  it('keeps nothing that was read before a commit and is kept after it', async () => {
    await run('UPDATE item SET body = $1 WHERE key = $2', 'older', 'a');
    const mark = memory.epoch();
    const row = await store.reader.get<{ body: string }>('SELECT body FROM item WHERE key = $1', 'a');
    await run('UPDATE item SET body = $1 WHERE key = $2', 'newer', 'a');
    memory.put(mark, 'item', 'a', row?.body ?? '');
    assert.equal(await read('a'), 'newer');
  });

  it('stays after a write that was undone', async () => {
    await assert.rejects(
      store.write(async (tx) => {
        await tx.run('UPDATE item SET body = $1 WHERE key = $2', 'never', 'a');
        throw new Error('no');
      }),
    );
    assert.equal(await read('a'), 'old');
  });

  it('forgets when another connection has written', async () => {
    const other = await openSqlite(path());
    await other.write((tx) => tx.run("UPDATE item SET body = 'theirs' WHERE key = 'a'"));
    await other.close();
    memory.revalidate();
    assert.equal(await read('a'), 'theirs');
    assert.equal(isKnown('b'), false);
  });

  it('is not there within a transaction', async () => {
    await store.write((tx) => assert.equal(tx.rowCache, undefined));
  });
});
