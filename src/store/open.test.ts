import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { migrations } from './migrations.ts';
import { openStore } from './open.ts';

describe('openStore', () => {
  let dataDir: string;
  before(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'wharf-open-'));
  });
  after(() => rmSync(dataDir, { recursive: true }));

  it('creates the data directory and a SQLite database in it, and logs the migrations', async () => {
    const lines: unknown[] = [];
    const log = {
      info: (fields: object, message: string) => void lines.push({ ...fields, message }),
      warn: () => assert.fail(),
    };
    const fresh = join(dataDir, 'a', 'b');
    for (const databaseUrl of [undefined, '']) {
      const store = await openStore({ dataDir: fresh, databaseUrl, log });
      await store.ping();
      await store.close();
    }
    assert.ok(existsSync(join(fresh, 'wharfinger.db')));
    assert.deepEqual(
      lines,
      migrations.flatMap(({ id, name, summary }) => [
        { id, name, summary, message: 'migrating the database' },
        { id, name, message: 'migrated the database' },
      ]),
    );
  });

  it('refuses another URL, with a message that does not contain the password', async () => {
    for (const databaseUrl of ['mysql://u:secret@h/d', 'secret', 'postgres:secret', ' postgres://u:secret@h/d']) {
      await assert.rejects(openStore({ dataDir, databaseUrl }), (error: Error) => {
        assert.match(error.message, /^the database URL must start with postgres:\/\/[^\n]*$/);
        return !error.message.includes('secret');
      });
    }
  });

  it('fails with a reason of one line', async () => {
    const file = join(dataDir, 'file');
    writeFileSync(file, 'x');
    const damaged = join(dataDir, 'damaged');
    await openStore({ dataDir: damaged }).then((store) => store.close());
    writeFileSync(join(damaged, 'wharfinger.db'), 'no database at all '.repeat(1000));
    const cases: [Parameters<typeof openStore>[0], RegExp][] = [
      [{ dataDir: file }, /^cannot open the database .*EEXIST/],
      [{ dataDir: damaged }, /^cannot open the database .*wharfinger\.db: the database file is not a database/],
      [
        { dataDir, databaseUrl: 'postgres://u:secret@127.0.0.1:1/d' },
        /^cannot open the PostgreSQL database: the database cannot be reached: .*ECONNREFUSED/,
      ],
      [{ dataDir, databaseUrl: 'postgres://u:secret@h:port/d' }, /^cannot open the PostgreSQL database: /],
    ];
    for (const [config, expected] of cases) {
      await assert.rejects(openStore(config), (error: Error) => {
        assert.match(error.message, expected);
        assert.doesNotMatch(error.message, /\n|secret/);
        return true;
      });
    }
  });
});
