import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Code } from '../../base/errors.ts';
import type { Store, Transaction } from '../store.ts';
import { openSqlite, type SqliteOptions } from './sqlite.ts';

const PUT = 'INSERT INTO item (key, body) VALUES ($1, $2)';
const put =
  (key: string, size = 0) =>
  (tx: Transaction) =>
    tx.run(PUT, key, new Uint8Array(size));
const unavailable = (message: RegExp) => ({ name: 'ApiError', code: Code.UNAVAILABLE, message });

describe('SQLite', () => {
  let directory: string;
  let path: string;
  let store: Store;
  const open = async (options?: SqliteOptions): Promise<Store> => {
    store = await openSqlite(path, options);
    return store;
  };
  const keys = async (): Promise<unknown[]> =>
    (await store.reader.all('SELECT key FROM item ORDER BY key')).map(({ key }) => key);

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'wharf-sqlite-'));
    path = join(directory, 'data', 'test.db');
    await open();
    await store.write((tx) => tx.run('CREATE TABLE item (key TEXT PRIMARY KEY, body BLOB) STRICT'));
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  it('is private to its user and durable by its settings', async () => {
    const modeOf = (file: string): number => statSync(file).mode & 0o777;
    assert.equal(modeOf(join(directory, 'data')), 0o700);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) assert.equal(modeOf(file), 0o600, file);
    const setting = (name: string) => store.write(async (tx) => Object.values((await tx.get(`PRAGMA ${name}`)) ?? {}));
    assert.deepEqual(await setting('journal_mode'), ['wal']);
    assert.deepEqual(await setting('synchronous'), [2]);
    assert.deepEqual(await setting('foreign_keys'), [1]);
  });

  it('batches the writes of one turn of the event loop into one commit', async () => {
    const size = (): number => statSync(`${path}-wal`).size;
    const before = size();
    await Promise.all(Array.from({ length: 50 }, (_, i) => store.write(put(`k${i}`))));
    // Each commit appends at least one page of 4 KiB to the WAL. All these rows fit on a few pages.
    assert.ok(size() - before < 50 * 4096);
    assert.equal((await keys()).length, 50);
  });

  it('runs one write at a time, in the order of the calls', async () => {
    const trace: string[] = [];
    const step = (name: string) => async (tx: Transaction) => {
      trace.push(`${name} starts`);
      for (let i = 0; i < 5; i++) await tx.get('SELECT 1');
      trace.push(`${name} ends`);
    };
    await Promise.all(['a', 'b', 'c'].map((name) => store.write(step(name))));
    assert.deepEqual(trace, ['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends']);
  });

  it('rejects all writes of a batch when its commit fails, and runs later ones', async () => {
    await store.write(async (tx) => {
      await tx.run('CREATE TABLE child (key TEXT REFERENCES item (key) DEFERRABLE INITIALLY DEFERRED) STRICT');
    });
    const results = await Promise.allSettled([
      store.write(put('valid')),
      store.write(put('valid')),
      store.write((tx) => tx.run('INSERT INTO child (key) VALUES ($1)', 'orphan')),
    ]);
    for (const result of results) {
      assert.equal(result.status, 'rejected');
      // Also the second, which violated the key of a row that was rolled back.
      assert.equal(result.reason.code, Code.UNAVAILABLE);
    }
    assert.deepEqual(await keys(), []);
    await store.write(put('later'));
    assert.deepEqual(await keys(), ['later']);
  });

  it('is unavailable while the disk is full, keeps what was committed, and recovers', async () => {
    await store.write(put('a', 1000));
    await store.write((tx) => tx.get('PRAGMA max_page_count = 20'));
    const results = await Promise.allSettled([store.write(put('b')), store.write(put('huge', 1_000_000))]);
    assert.equal(results[1].status, 'rejected');
    assert.match(results[1].reason.message, /^Unavailable: the disk of the database is full$/);
    const committed = results[0].status === 'fulfilled' ? ['a', 'b'] : ['a'];
    assert.deepEqual(await keys(), committed);
    await store.write((tx) => tx.get('PRAGMA max_page_count = 100000'));
    await store.write(put('huge', 1_000_000));
    assert.deepEqual(await keys(), [...committed, 'huge']);
  });

  it('recovers from a commit that the operating system refuses to write', () => {
    const child = fileURLToPath(new URL('./full-disk.testing.ts', import.meta.url));
    const limited = 'ulimit -f 400 && exec "$0" "$@"'; // files of at most 200 or 400 KiB, as the shell counts
    const run = spawnSync('sh', ['-c', limited, process.execPath, child, join(directory, 'limited.db')], {
      encoding: 'utf8',
    });
    assert.equal(run.status, 0, run.stderr);
    assert.deepEqual(JSON.parse(run.stdout), {
      refused: 'Unavailable: the database file could not be read or written',
      keys: ['after', 'before'],
    });
  });

  it('is unavailable when it cannot be written', async () => {
    await store.write((tx) => tx.get('PRAGMA query_only = ON'));
    await assert.rejects(store.write(put('a')), unavailable(/read-only/));
    assert.deepEqual(await keys(), [], 'reads still work');
  });

  it('is unavailable where the file is damaged', async () => {
    await store.write(put('a', 100_000));
    await store.close();
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(statSync(path).size - 4096, 0xff), 0, undefined, 4096);
    await open();
    await assert.rejects(async () => store.reader.all('SELECT key FROM item'), unavailable(/damaged/));
    await assert.rejects(store.write(put('b')), unavailable(/damaged/));
  });

  it('waits for the lock of another process, up to a limit', async () => {
    await store.close();
    await open({ lockWaitMs: 50 });
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    await assert.rejects(store.write(put('a')), unavailable(/another process is writing/));
    assert.deepEqual(await keys(), [], 'reads still work');

    await store.close();
    await open();
    const waiting = store.write(put('b'));
    setImmediate(() => other.exec('ROLLBACK'));
    await waiting;
    other.close();
    assert.deepEqual(await keys(), ['b']);
  });

  it('leaves one file when it is closed', async () => {
    await store.write(put('a'));
    await store.close();
    assert.ok(!existsSync(`${path}-wal`));
    await open();
    assert.deepEqual(await keys(), ['a']);
  });
});

it('evicts prepared statements and prepares them again', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-sqlite-'));
  const store = await openSqlite(join(directory, 'many.db'));
  try {
    for (let pass = 0; pass < 2; pass++) {
      for (let i = 0; i < 1200; i++) assert.deepEqual({ ...(await store.reader.get(`SELECT ${i} AS n`)) }, { n: i });
    }
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
});
