import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { runInProcess, wharf } from '../../src/cli/cli.testing.ts';
import { ExitCode } from '../../src/cli/exit-codes.ts';
import { loadConfig } from '../../src/config.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Server, startServer } from '../../src/main.ts';
import { openStore } from '../../src/store/open.ts';
import { type Database, type DataLocation, databases } from '../support/databases.ts';
import { digestOf, errorCodesIn, ociClient, pushImage } from '../support/oci-client.ts';
import { silentLog } from '../support/server.ts';

const LAYER = 'the layer that gets lost';

const start = (
  { dataDir: data, databaseUrl }: Pick<DataLocation, 'dataDir' | 'databaseUrl'>,
  warn = (_: string) => {},
) =>
  startServer(loadConfig({ listen: '127.0.0.1:0', data, databaseUrl }, {}), {
    log: { ...silentLog, warn: (_fields, message) => warn(message) },
  });

const envOf = ({ dataDir, databaseUrl }: DataLocation): Record<string, string> => ({
  WHARF_DATA: dataDir,
  ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }),
});

async function client(t: TestContext, server: Server, location: DataLocation) {
  const made = ociClient(server.url, `Bearer ${await mintOwnerToken(location.dataDir)}`);
  t.after(() => made.close());
  return made;
}

/** A stopped server with an image. */
async function stoppedServer(t: TestContext, database: Database): Promise<DataLocation> {
  const location = await database.createDataLocation();
  t.after(() => location.remove());
  const server = await start(location);
  await pushImage(await client(t, server, location), 'my-org/app', 'v1', LAYER);
  await server.stop();
  return location;
}

for (const database of databases) {
  describe(`a start on ${database.name}`, () => {
    test('refuses a lost or unmounted registry, until it is accepted; then pushes store the blobs again', async (t) => {
      const location = await stoppedServer(t, database);
      const registry = join(location.dataDir, 'registry');
      const elsewhere = `${location.dataDir}-volume`;
      t.after(() => rmSync(elsewhere, { recursive: true, force: true }));
      renameSync(registry, elsewhere);
      const lost = {
        message:
          `the database has 2 blobs, but ${registry} has none of them: mount its volume, or restore it from a backup; ` +
          "to start without them, run 'wharf registry init', then push the images again",
      };
      await assert.rejects(start(location), lost);
      assert.ok(!existsSync(registry));
      mkdirSync(registry);
      await assert.rejects(start(location), lost);
      assert.deepEqual(readdirSync(registry), [], 'nothing is written to an empty mount point');

      // The volume is mounted again.
      cpSync(elsewhere, registry, { recursive: true });
      await (await start(location)).stop();
      rmSync(registry, { recursive: true });

      const unconfirmed = await runInProcess(['registry', 'init'], envOf(location));
      assert.equal(unconfirmed.code, ExitCode.precondition);
      assert.match(unconfirmed.stderr, /^wharf: the database has 2 blobs, but .* has none of them; if they are lost, /);
      assert.ok(!existsSync(registry));
      const confirmed = await wharf(['registry', 'init', '--yes'], envOf(location));
      assert.equal(confirmed.code, 0, confirmed.stderr);
      assert.match((await runInProcess(['registry', 'init'], envOf(location))).stdout, /nothing to do/);

      const server = await start(location);
      try {
        const owner = await client(t, server, location);
        const digest = digestOf(Buffer.from(LAYER));
        const get = await owner.send('GET', `/v2/my-org/app/blobs/${digest}`);
        assert.deepEqual([get.status, errorCodesIn(get)], [404, ['BLOB_UNKNOWN']]);
        assert.equal((await owner.send('HEAD', `/v2/my-org/app/blobs/${digest}`)).status, 404);
        assert.equal((await owner.send('GET', '/v2/my-org/app/manifests/v1')).status, 200);
        const verified = await runInProcess(['registry', 'verify'], envOf(location));
        assert.equal(verified.code, ExitCode.damaged);
        assert.match(verified.stdout, new RegExp(`${digest}: missing\n  my-org/app :v1\n`));
        await pushImage(owner, 'my-org/app', 'v1', LAYER);
        assert.equal((await owner.send('GET', `/v2/my-org/app/blobs/${digest}`)).body.toString(), LAYER);
        assert.equal((await runInProcess(['registry', 'verify'], envOf(location))).code, 0);
      } finally {
        await server.stop();
      }
    });

    test('and garbage collection refuse the registry and the data directory of another database', async (t) => {
      const location = await stoppedServer(t, database);
      const other = await stoppedServer(t, database);
      const idFile = (in_: DataLocation, directory: string) => join(in_.dataDir, directory, 'database-id');
      const blobs = readdirSync(join(location.dataDir, 'registry/blobs'), { recursive: true }).length;
      copyFileSync(idFile(other, 'registry'), idFile(location, 'registry'));
      const message =
        /registry has the blobs of another database \(that of organization \w{40}, not \w{40}\): mount the/;
      await assert.rejects(start(location), { message });
      for (const command of ['gc', 'verify', 'init']) {
        assert.match((await runInProcess(['registry', command], envOf(location))).stderr, message);
      }
      assert.equal(readdirSync(join(location.dataDir, 'registry/blobs'), { recursive: true }).length, blobs);

      copyFileSync(idFile(other, '.'), idFile(location, '.'));
      const directory =
        /^the data directory .* belongs to another database \(.*\): check WHARF_DATA and WHARF_DATABASE_URL$/;
      await assert.rejects(start(location), { message: directory });
      for (const command of [
        ['registry', 'gc'],
        ['keys', 'list'],
        ['owner', 'recover'],
      ]) {
        assert.match((await runInProcess(command, envOf(location))).stderr, /belongs to another database/);
      }
    });

    test('refuses to create an empty database in a data directory that was used before', async (t) => {
      const location = await stoppedServer(t, database);
      const before = readFileSync(join(location.dataDir, 'owner.json'), 'utf8');
      if (location.databaseUrl === undefined) {
        const file = join(location.dataDir, 'wharfinger.db');
        renameSync(file, `${file}.lost`);
        const missing =
          /^the database .*wharfinger\.db is missing, although the data directory was used before: restore it from a backup, or set WHARF_DATABASE_URL/;
        await assert.rejects(start(location), { message: missing });
        assert.match(
          (await wharf(['serve'], { ...envOf(location), WHARF_LISTEN: '127.0.0.1:0' })).stderr,
          /is missing, although/,
        );
        assert.match((await runInProcess(['owner', 'recover'], envOf(location))).stderr, /is missing, although/);
        assert.ok(!existsSync(file));
        renameSync(`${file}.lost`, file);
      } else {
        const empty = await database.createDataLocation();
        t.after(() => empty.remove());
        const message =
          /^the database is empty, although the data directory .* was used before: check WHARF_DATABASE_URL/;
        await assert.rejects(start({ ...location, databaseUrl: empty.databaseUrl }), { message });
      }
      assert.equal(readFileSync(join(location.dataDir, 'owner.json'), 'utf8'), before);
      await (await start(location)).stop();
    });

    test('continues a first start that was interrupted, and accepts the directory of an earlier version', async (t) => {
      const location = await stoppedServer(t, database);
      const fresh = await database.createDataLocation();
      t.after(() => fresh.remove());
      copyFileSync(join(location.dataDir, 'owner.json'), join(fresh.dataDir, 'owner.json'));
      await (await start(fresh)).stop();

      for (const file of ['database-id', 'registry/database-id']) rmSync(join(location.dataDir, file));
      const store = await openStore(location);
      await store.write((tx) => tx.run("DELETE FROM setting WHERE key = 'database.id'"));
      await store.close();
      await (await start(location)).stop();
      for (const file of ['database-id', 'registry/database-id']) assert.ok(existsSync(join(location.dataDir, file)));
      for (const file of ['database-id', 'registry']) rmSync(join(location.dataDir, file), { recursive: true });
      await assert.rejects(start(location), { message: /the database has 2 blobs, but/ });
    });

    if (database.name === 'SQLite') {
      test('says that a damaged database must be restored from a backup', async (t) => {
        const location = await stoppedServer(t, database);
        const file = join(location.dataDir, 'wharfinger.db');
        const intact = readFileSync(file);
        const restore =
          /wharfinger\.db: .*(?:is damaged|is not a database).*: stop the server and restore it from a backup/;
        for (const [from, to] of [
          [0, intact.length],
          [4096, intact.length],
          [0, 100],
        ] as const) {
          writeFileSync(file, Buffer.from(intact).fill(0xff, from, to));
          await assert.rejects(start(location), { message: restore });
        }
        assert.match((await runInProcess(['keys', 'list'], envOf(location))).stderr, restore);
        writeFileSync(file, intact);
        await (await start(location)).stop();
      });

      test('names the command that replaces a lost owner file, which works while the server is stopped', async (t) => {
        const location = await stoppedServer(t, database);
        rmSync(join(location.dataDir, 'owner.json'));
        const warnings: string[] = [];
        await (await start(location, (text) => warnings.push(text))).stop();
        assert.match(
          warnings.join('\n'),
          /owner\.json is missing: run 'wharf owner recover --data .*', which writes a new one/,
        );
        assert.equal((await runInProcess(['owner', 'recover'], envOf(location))).code, 0);
        const server = await start(location);
        const owner = await client(t, server, location);
        assert.equal((await owner.send('GET', '/v2/my-org/app/manifests/v1')).status, 200);
        await server.stop();
      });
    }

    if (database.name === 'PostgreSQL') {
      test('accepts a new data directory for a database with blobs, and says that they are elsewhere', async (t) => {
        const location = await stoppedServer(t, database);
        const second = await database.createDataLocation();
        t.after(() => second.remove());
        copyFileSync(join(location.dataDir, 'master.key'), join(second.dataDir, 'master.key'));
        const warnings: string[] = [];
        await (await start({ ...second, databaseUrl: location.databaseUrl }, (text) => warnings.push(text))).stop();
        assert.match(warnings.join('\n'), /the database has 2 blobs, but .* has none of them/);
      });
    }
  });
}
