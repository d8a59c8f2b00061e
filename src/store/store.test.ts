import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DataLocation, databases } from '../../test/support/databases.ts';
import { ApiError, Code } from '../base/errors.ts';
import { openStore } from './open.ts';
import { type Row, type Store, type Transaction, UniqueViolation } from './store.ts';

const PUT = 'INSERT INTO setting (key, value) VALUES ($1, $2)';
const ALL = 'SELECT key, value FROM setting ORDER BY key';
const put =
  (key: string, value = '') =>
  (tx: Transaction) =>
    tx.run(PUT, key, value);
const byKey = (a: Row, b: Row): number => (String(a.key) < String(b.key) ? -1 : 1);
const plain = (rows: readonly Row[]): Row[] => rows.map((row) => ({ ...row }));
const unavailable = { name: 'ApiError', code: Code.UNAVAILABLE };

for (const database of databases) {
  describe(`store on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    const keys = async (): Promise<unknown[]> => (await store.reader.all(ALL)).map(({ key }) => key);

    before(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
    });
    beforeEach(() => store.write((tx) => tx.run('DELETE FROM setting')));
    after(async () => {
      await store.close();
      await home.remove();
    });

    it('shows a committed write to the next read', async () => {
      for (let i = 0; i < 20; i++) {
        await store.write(put(`k${i}`));
        assert.ok(await store.reader.get('SELECT 1 AS found FROM setting WHERE key = $1', `k${i}`));
      }
    });

    it('returns rows, one row or undefined, and how many rows changed', async () => {
      assert.equal(await store.write(put('a', 'x')), 1);
      await store.write(put('b', 'y'));
      assert.deepEqual(plain(await store.reader.all(ALL)), [
        { key: 'a', value: 'x' },
        { key: 'b', value: 'y' },
      ]);
      assert.equal(await store.reader.get('SELECT value FROM setting WHERE key = $1', 'none'), undefined);
      assert.equal(await store.write((tx) => tx.run('UPDATE setting SET value = $1', 'z')), 2);
      assert.equal(await store.write((tx) => tx.run('DELETE FROM setting WHERE key = $1', 'none')), 0);
    });

    it('has numbered parameters, in any order and more than once', async () => {
      await store.write((tx) =>
        tx.run(`${PUT.replace('$1, $2', '$2, $1')} ON CONFLICT (key) DO UPDATE SET value = $1`, 'v', 'k'),
      );
      assert.deepEqual(plain(await store.reader.all(ALL)), [{ key: 'k', value: 'v' }]);
    });

    it('isolates a transaction until it commits', async () => {
      await store.write(async (tx) => {
        await tx.run(PUT, 'a', '');
        assert.equal((await tx.all(ALL)).length, 1, 'the transaction sees its own row');
        assert.equal((await store.reader.all(ALL)).length, 0, 'others do not');
      });
      assert.deepEqual(await keys(), ['a']);
    });

    it('rolls back when the work throws, and rejects with the same error', async () => {
      const mine = new Error('mine');
      const work = async (tx: Transaction) => {
        await tx.run(PUT, 'a', '');
        throw mine;
      };
      await assert.rejects(store.write(work), (error) => error === mine);
      const sync = () => {
        throw mine;
      };
      await assert.rejects(store.write(sync), (error) => error === mine);
      assert.deepEqual(await keys(), []);
    });

    it('rolls back only the failed ones of many concurrent writes', async () => {
      const writes = Array.from({ length: 200 }, (_, i) =>
        store.write(async (tx) => {
          await tx.run(PUT, `k${i}`, '');
          if (i % 3 === 0) throw new Error(`fails ${i}`);
          return i;
        }),
      );
      const results = await Promise.allSettled(writes);
      const failed = results.flatMap((r, i) => (r.status === 'rejected' ? [[i, r.reason.message]] : []));
      const expected = Array.from({ length: 67 }, (_, i) => [i * 3, `fails ${i * 3}`]);
      assert.deepEqual(failed, expected);
      assert.deepEqual(
        results.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : [])),
        Array.from({ length: 200 }, (_, i) => i).filter((i) => i % 3 !== 0),
      );
      assert.equal((await keys()).length, 133);
    });

    it('keeps no row of an insert that fails at its second row, alone or with concurrent writes', async () => {
      const both = (tx: Transaction) => tx.run(`${PUT}, ($3, $4)`, 'new', '', 'taken', '');
      await store.write(put('taken'));
      await assert.rejects(store.write(both), UniqueViolation);
      assert.deepEqual(await keys(), ['taken']);
      const [failed] = await Promise.allSettled([store.write(both), store.write(put('other'))]);
      assert.equal(failed.status, 'rejected');
      assert.deepEqual(await keys(), ['other', 'taken']);
    });

    it('loses no update of concurrent writes that read with forUpdate', async () => {
      await store.write(put('n', '0'));
      const increment = async (tx: Transaction) => {
        const row = await tx.forUpdate.get<{ value: string }>('SELECT value FROM setting WHERE key = $1', 'n');
        await tx.run('UPDATE setting SET value = $1 WHERE key = $2', String(Number(row?.value) + 1), 'n');
      };
      await Promise.all(Array.from({ length: 100 }, () => store.write(increment)));
      assert.equal((await store.reader.get(ALL))?.value, '100');
    });

    it('returns the rows of a RETURNING clause', async () => {
      for (const key of ['a', 'b', 'c']) await store.write(put(key, 'old'));
      const updated = await store.write((tx) =>
        tx.runReturning<{ key: string; value: string }>(
          'UPDATE setting SET value = $1 WHERE key IN ($2, $3) RETURNING key, value',
          ...['new', 'a', 'b'],
        ),
      );
      assert.deepEqual(plain(updated).sort(byKey), [
        { key: 'a', value: 'new' },
        { key: 'b', value: 'new' },
      ]);
      const deleted = (key: string) =>
        store.write((tx) => tx.runReturning('DELETE FROM setting WHERE key = $1 RETURNING value', key));
      assert.deepEqual(plain(await deleted('c')), [{ value: 'old' }]);
      assert.deepEqual(await deleted('c'), []);
      assert.deepEqual(await keys(), ['a', 'b']);
    });

    it('rolls back and ends the transaction when a statement with RETURNING fails', async () => {
      await store.write(put('a'));
      await store.write(put('b'));
      const work = async (tx: Transaction) => {
        await tx.run(PUT, 'c', '');
        await tx.runReturning("UPDATE setting SET key = 'a' WHERE key = 'b' RETURNING key");
      };
      await assert.rejects(store.write(work), UniqueViolation);
      assert.deepEqual(await keys(), ['a', 'b']);
    });

    for (const lock of ['forShare', 'forUpdate', 'forUpdateSkipLocked'] as const) {
      it(`${lock} reads like the transaction itself, including its own changes`, async () => {
        await store.write(put('a', 'old'));
        await store.write(async (tx) => {
          await tx.run('UPDATE setting SET value = $1 WHERE key = $2', 'new', 'a');
          await tx.run(PUT, 'b', '');
          assert.deepEqual(plain(await tx[lock].all(ALL)), [
            { key: 'a', value: 'new' },
            { key: 'b', value: '' },
          ]);
          const row = await tx[lock].get<{ value: string }>('SELECT value FROM setting WHERE key = $1', 'a');
          assert.equal(row?.value, 'new');
          assert.equal(await tx[lock].get('SELECT value FROM setting WHERE key = $1', 'none'), undefined);
          assert.equal(tx[lock].binaryCollation, store.reader.binaryCollation);
        });
      });

      it(`${lock} is refused after a failed statement and after the end of the transaction`, async () => {
        let ended: Transaction | undefined;
        const work = async (tx: Transaction) => {
          ended = tx;
          await assert.rejects(async () => tx[lock].all('SELECT nothing FROM setting'));
          await tx.run(PUT, 'a', '');
        };
        await assert.rejects(store.write(work), (error) => !(error instanceof ApiError));
        await assert.rejects(async () => ended?.[lock].all(ALL), /after the end/);
        assert.deepEqual(await keys(), []);
      });
    }

    it('does not change a row that a concurrent write has locked with forShare', async () => {
      await store.write(put('a', 'old'));
      const locked = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const reading = store.write(async (tx) => {
        await tx.forShare.get('SELECT value FROM setting WHERE key = $1', 'a');
        locked.resolve();
        await release.promise;
        return (await tx.get<{ value: string }>('SELECT value FROM setting WHERE key = $1', 'a'))?.value;
      });
      await locked.promise;
      const changing = store.write((tx) => tx.run('UPDATE setting SET value = $1 WHERE key = $2', 'new', 'a'));
      await sleep(20);
      release.resolve();
      assert.equal(await reading, 'old');
      assert.equal(await changing, 1);
    });

    it('names the table of a unique violation, for a primary key and for a unique constraint', async () => {
      await store.write(put('a'));
      await assert.rejects(store.write(put('a')), (e) => e instanceof UniqueViolation && e.table === 'setting');
      const list = (tx: Transaction) =>
        tx.run('INSERT INTO list (scope, kind, facet, n) VALUES ($1, $2, $3, $4)', 'c:x', 'group', '', 0);
      await store.write(list);
      await assert.rejects(store.write(list), (e) => e instanceof UniqueViolation && e.table === 'list');
    });

    it('lets exactly one of many concurrent writes insert a key', async () => {
      const results = await Promise.allSettled(Array.from({ length: 30 }, (_, i) => store.write(put('same', `${i}`))));
      const lost = results.flatMap((r) => (r.status === 'rejected' ? [r.reason] : []));
      assert.equal(lost.length, 29);
      assert.ok(lost.every((error) => error instanceof UniqueViolation));
    });

    it('ends a transaction with its first failed statement, even if the work catches the error', async () => {
      await store.write(put('a'));
      const tried: unknown[] = [];
      const ignoreErrors = async (tx: Transaction) => {
        for (const key of ['b', 'a', 'c']) {
          try {
            tried.push(await tx.run(PUT, key, ''));
          } catch (error) {
            tried.push(error);
          }
        }
      };
      await assert.rejects(store.write(ignoreErrors), UniqueViolation);
      assert.equal(tried[0], 1);
      assert.ok(tried[1] instanceof UniqueViolation);
      assert.equal(tried[2], tried[1], 'a later statement fails with the same error');
      assert.deepEqual(await keys(), ['a']);
    });

    it('commits unawaited statements with the others, and rolls back when an unawaited one fails', async () => {
      await store.write(async (tx) => {
        tx.runUnawaited(PUT, 'a', 'unawaited');
        await tx.run(PUT, 'b', 'awaited');
      });
      assert.deepEqual(await keys(), ['a', 'b']);
      for (const [bad, failure] of [
        ['a', UniqueViolation],
        ['\0', { code: Code.INVALID_ARGUMENT }],
      ] as const) {
        // The last statement, so that only the commit can notice.
        await assert.rejects(
          store.write(async (tx) => {
            await tx.run(PUT, 'c', '');
            tx.runUnawaited(PUT, bad, '');
          }),
          failure,
        );
        assert.deepEqual(await keys(), ['a', 'b']);
      }
    });

    it('refuses a statement after the end of its transaction', async () => {
      let ended: Transaction | undefined;
      await store.write((tx) => {
        ended = tx;
      });
      await assert.rejects(async () => ended?.run(PUT, 'late', ''), /after the end/);
      assert.deepEqual(await keys(), []);
    });

    it('orders text bytewise', async () => {
      const words = ['B', 'a', 'Z', 'é', 'A-', 'A', '_', '~', '', 'ä', '😀', '\uffff', 'a b', 'a-b', 'ab', '0'];
      await store.write(async (tx) => {
        for (const word of words) await tx.run(PUT, word, word);
      });
      const expected = [...words].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(await keys(), expected);
    });

    it('orders text from JSON bytewise with binaryCollation', async () => {
      const names = ['b', 'B', 'a', 'A'];
      const insert = `INSERT INTO resource (kind, uid, parent, created, updated, keys, body)
        VALUES ('sorted', $1, '/', 0, 0, $2, $3)`;
      await store.write(async (tx) => {
        for (const name of names) await tx.run(insert, name, JSON.stringify({ name }), new Uint8Array(0));
      });
      const name = `(keys ->> 'name')${store.reader.binaryCollation}`;
      const rows = await store.reader.all(
        `SELECT uid FROM resource WHERE kind = 'sorted' AND ${name} > $1 ORDER BY ${name}`,
        'A',
      );
      assert.deepEqual(
        rows.map(({ uid }) => uid),
        ['B', 'a', 'b'],
      );
    });

    it('returns bytes, integers, JSON and null unchanged', async () => {
      const put = `INSERT INTO resource (kind, uid, parent, created, updated, keys, body, state)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
      const large = new Uint8Array(3_000_000).map((_, i) => i % 251);
      const cases = [
        { uid: 'large', created: Number.MAX_SAFE_INTEGER, updated: Number.MIN_SAFE_INTEGER, body: large, state: null },
        { uid: 'empty', created: 0, updated: -1, body: new Uint8Array(0), state: '{}' },
        { uid: 'view', created: 2 ** 31, updated: 1, body: large.subarray(5, 9), state: '' },
      ];
      await store.write(async (tx) => {
        for (const { uid, created, updated, body, state } of cases) {
          await tx.run(put, 'test', uid, '/', created, updated, JSON.stringify({ name: uid, n: 'é"' }), body, state);
        }
      });
      for (const expected of cases) {
        const row = await store.reader.get<{ body: Uint8Array; keys: string } & Row>(
          `SELECT uid, created, updated, body, state, keys, keys ->> 'name' AS name FROM resource WHERE kind = $1 AND uid = $2`,
          'test',
          expected.uid,
        );
        assert.ok(row);
        assert.ok(row.body instanceof Uint8Array);
        assert.equal(Buffer.compare(row.body, expected.body), 0);
        assert.deepEqual(JSON.parse(row.keys), { name: expected.uid, n: 'é"' });
        const { uid, created, updated, state } = expected;
        assert.deepEqual({ ...row, body: 0, keys: '' }, { uid, created, updated, state, body: 0, keys: '', name: uid });
      }
      const counted = await store.reader.get(
        'SELECT count(*) AS n, sum(updated) AS total, max(created) > $1 AS above FROM resource WHERE kind = $2 AND uid <> $3',
        5,
        'test',
        'large',
      );
      assert.deepEqual({ ...counted }, { n: 2, total: 0, above: 1 });
    });

    it('refuses an integer that a number would round', async () => {
      await assert.rejects(async () => store.reader.get('SELECT 9007199254740993 AS n'), RangeError);
    });

    it('refuses NUL in the text parameters of reads and writes', async () => {
      const bad = { name: 'ApiError', code: Code.INVALID_ARGUMENT };
      await assert.rejects(store.write(put('a\0b')), bad);
      await assert.rejects(async () => store.reader.get('SELECT 1 FROM setting WHERE key = $1', '\0'), bad);
      assert.deepEqual(await keys(), []);
    });

    it('does not interpret parameters as SQL', async () => {
      const texts = ["'; DROP TABLE setting; --", '$1', '?1', '%_\\', '"', "''", '\u2028'];
      await store.write(async (tx) => {
        for (const text of texts) await tx.run(PUT, text, text);
      });
      for (const text of texts) {
        assert.equal((await store.reader.get('SELECT value FROM setting WHERE key = $1', text))?.value, text);
      }
    });

    it('does not turn an invalid statement into an ApiError, so that it is logged as a bug', async () => {
      await assert.rejects(
        store.write((tx) => tx.run('NONSENSE')),
        (error) => !(error instanceof ApiError),
      );
      await assert.rejects(
        async () => store.reader.get('SELECT nothing'),
        (error) => !(error instanceof ApiError),
      );
      await store.write(put('fine'));
    });

    it('can be pinged, and is unavailable after it was closed', async () => {
      const other = await openStore(home);
      await other.ping();
      const running = other.write(put('before'));
      const closing = other.close();
      await assert.rejects(other.write(put('after')), unavailable);
      await Promise.all([running, closing, other.close()]);
      await assert.rejects(async () => other.reader.all(ALL), unavailable);
      await assert.rejects(async () => other.reader.get(ALL), unavailable);
      await assert.rejects(other.ping(), unavailable);
      assert.deepEqual(await keys(), ['before']);
    });
  });
}
