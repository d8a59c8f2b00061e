import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { start, wharf } from '../../src/cli/cli.testing.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import { type DataLocation, findDatabase } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import {
  createSampleData,
  jsonApi,
  pullImages,
  readEverything,
  renewLogin,
  type SampleData,
} from '../support/sample-data.ts';
import { startSink, type TestSink } from '../support/sink.ts';

const ENV = { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_SINK_RATE: '10000', WHARF_DELIVERY_TIMEOUT: '1s' };
const WRITERS = 2;
/** Every write is also an event that the server delivers. */
const PAUSE_MS = 40;

describe('wharf db copy, while the server serves', { timeout: 200_000 }, () => {
  let location: DataLocation;
  let database: FreshDatabase;
  let sink: TestSink;
  let server: ServerProcess;
  let moved: ServerProcess | undefined;
  let token: string;
  let sample: SampleData;
  let args: string[];
  const acknowledged: string[] = [];
  const refusals: { status: number; retryAfter: string | null }[] = [];
  let everything: Map<string, unknown>;
  let images: Map<string, Buffer>;

  before(async () => {
    location = await findDatabase('SQLite').createDataLocation();
    database = await freshDatabase();
    sink = await startSink();
    server = await spawnServer(location, ENV);
    token = await mintOwnerToken(location.dataDir);
    sample = await createSampleData(server.url, token, 'copied', sink.url);
    // The URL is in a file, because a command line is visible to other users.
    const file = join(location.dataDir, 'url');
    writeFileSync(file, database.url, { mode: 0o600 });
    args = ['db', 'copy', '--to', `@${file}`, '--data', location.dataDir];
  });
  after(async () => {
    await server?.kill();
    await moved?.kill();
    await sink?.close();
    await location?.remove();
    await database?.drop();
  });

  /** Creates groups one after the other until the server refuses one. */
  async function writeUntilRefused(writer: number): Promise<void> {
    for (let at = 0; ; at++) {
      const name = `written ${writer} ${at}`;
      const response = await fetch(`${server.url}/iam/v2/groups/${sample.group}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name }),
      });
      await response.text();
      await delay(PAUSE_MS);
      if (response.ok) acknowledged.push(name);
      else {
        refusals.push({ status: response.status, retryAfter: response.headers.get('retry-after') });
        return;
      }
    }
  }

  /** Starts the copy and kills it as soon as it reports this step. */
  async function killedAt(step: RegExp): Promise<void> {
    const { child, done } = start(args, {});
    let printed = '';
    child.stderr?.on('data', (text) => {
      printed += text;
      if (step.test(printed)) child.kill('SIGKILL');
    });
    await done;
    assert.match(printed, step);
  }

  test('a copy that was killed at each of its steps is resumed, and finishes', async () => {
    const writing = Array.from({ length: WRITERS }, (_, writer) => writeUntilRefused(writer));
    for (const step of [/copying all tables/, /comparing all rows/, /freezing writes/]) {
      const before = acknowledged.length;
      await killedAt(step);
      await pollUntil(
        async () => acknowledged.length,
        (count) => count > before,
      );
      assert.deepEqual(refusals, [], 'the server goes on after a copy that was killed');
    }
    const { code, stdout, stderr } = await wharf(args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^TABLE +ROWS +CHECKSUM\n/);
    assert.match(stdout, /\nresource +\d+ +[0-9a-f]{16}\n/);
    assert.match(stdout, /Both databases are the same\. Writes were frozen for \d+ ms\./);
    assert.match(stdout, /Keep the data directory .*: the master key, the key of the owner and the blobs of images/);
    assert.ok(!`${stdout}${stderr}`.includes(database.url));
    await Promise.all(writing);
    assert.ok(acknowledged.length > 20, `${acknowledged.length} writes`);
  });

  test('the running server then refuses writes with Retry-After, and goes on reading', async () => {
    assert.equal(refusals.length, WRITERS);
    for (const { status, retryAfter } of refusals) assert.deepEqual([status, retryAfter], [503, '1']);
    everything = await readEverything(server.url, token);
    images = await pullImages(server.url, token, sample.images);
    assert.ok(everything.size > 50 && images.size > 5);
  });

  test('a server does not start on the database that was moved, and the message names the new one', async () => {
    await server.stop();
    await assert.rejects(spawnServer(location, ENV), (error: Error) => {
      assert.match(
        error.message,
        /was moved to the PostgreSQL database test_\d+ on .*: set WHARF_DATABASE_URL to that/,
      );
      return true;
    });
  });

  test('a server on PostgreSQL has everything that was acknowledged, and takes up its work', async () => {
    const { port } = new URL(server.url);
    const onPostgres = { ...location, databaseUrl: database.url };
    moved = await spawnServer(onPostgres, { ...ENV, WHARF_LISTEN: `127.0.0.1:${port}` });
    assert.deepEqual(await readEverything(moved.url, token), everything);
    assert.deepEqual(await pullImages(moved.url, token, sample.images), images);
    const api = jsonApi(moved.url, token);
    const names: string[] = [];
    for (let skip = 0; skip < acknowledged.length; skip += 200) {
      const page = `/iam/v2/groups?uidp.children_of=${sample.group}&page_size=200&skip=${skip}`;
      names.push(...((await api.call('GET', page)).groups as { name: string }[]).map(({ name }) => name));
    }
    const missing = acknowledged.filter((name) => !names.includes(name));
    assert.deepEqual(missing, []);
    // Logins, page tokens and generated ids continue.
    assert.ok((await renewLogin(moved.url, sample.refreshToken)).token);
    assert.equal((await jsonApi(moved.url, sample.accessToken).send('GET', '/iam/v2/groups')).status, 200);
    const page = `/iam/v2/groups?page_size=1&order_by=name&page_token=${encodeURIComponent(sample.pageToken)}`;
    assert.equal(((await api.call('GET', page)).groups as unknown[]).length, 1);
    const { uid } = await api.call('POST', `/iam/v2/groups/${sample.group}`, { name: 'written after the move' });
    await pollUntil(
      async () => sink.received.map(({ attributes }) => attributes.subject),
      (subjects) => subjects.includes(String(uid)),
    );
    const store = await openStore(onPostgres);
    await assertConsistent(store.reader).finally(() => store.close());
  });

  test('a copy can be undone, also after the move', async (t) => {
    const { code, stdout } = await wharf(['db', 'copy', '--undo', '--data', location.dataDir]);
    assert.equal(code, 0);
    assert.match(stdout, /the SQLite database can be used again; it has nothing of what was written to the PostgreSQL/);
    const again = await spawnServer(location, ENV);
    t.after(() => again.kill());
    await jsonApi(again.url, token).call('POST', `/iam/v2/groups/${sample.group}`, { name: 'written to sqlite again' });
  });
});

test('wharf db copy explains what is wrong with its arguments', async (t) => {
  const location = await findDatabase('SQLite').createDataLocation();
  t.after(() => location.remove());
  const data = ['--data', location.dataDir];
  const cases: [string[], number, RegExp][] = [
    [[], 2, /^wharf: give the PostgreSQL database with --to postgres:\/\/user@host\/database\n$/],
    [['--to', 'mysql://u:secret@h/d'], 2, /^wharf: --to: write postgres:\/\/user@host:5432\/database, or @file/],
    [['--to', 'postgres://u:secret@h/d'], 1, /^wharf: no SQLite database in .*: give the data directory of the server/],
  ];
  for (const [args, expected, message] of cases) {
    const { code, stderr } = await wharf(['db', 'copy', ...args, ...data]);
    assert.equal(code, expected);
    assert.match(stderr, message);
    assert.ok(!stderr.includes('secret'));
  }
  await (await openStore(location)).close();
  const { code, stderr } = await wharf(['db', 'copy', '--to', 'postgres://u:secret@127.0.0.1:1/d', ...data]);
  assert.equal(code, 1);
  assert.match(stderr, /cannot connect to the PostgreSQL database d on 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\)/);
  assert.ok(!stderr.includes('secret'));
});
