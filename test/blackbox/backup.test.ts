import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { blobKey } from '../../src/backup/blob-list.ts';
import { formatManifest, parseManifest } from '../../src/backup/manifest.ts';
import { runInProcess } from '../../src/cli/cli.testing.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { holdBlobs, releaseBlobs } from '../../src/domains/registry/storage/blob-holds.ts';
import { postgresDialect, sqliteDialect } from '../../src/store/dialect.ts';
import { migrate, migrations } from '../../src/store/migrations.ts';
import { databaseFile, openStore } from '../../src/store/open.ts';
import { openPostgres } from '../../src/store/postgres/postgres.ts';
import { getSetting, putSetting } from '../../src/store/settings.ts';
import { openSqlite } from '../../src/store/sqlite/sqlite.ts';
import { assertConsistent } from '../support/consistency.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { basicAuth, digestOf, ociClient, pushImage } from '../support/oci-client.ts';
import { startServerOn, startTestServer, type TestServer } from '../support/server.ts';
import { grpcClient } from '../support/wires.ts';

const { createGroup, getGroup } = GroupsService.method;
const REPO = 'my-org/backup';
const OLDER_SCHEMA = 8;

for (const database of databases) {
  describe(`wharf backup on ${database.name}`, () => {
    let server: TestServer;
    let parent: string;
    let target: string;
    let group: string;

    const env = ({ dataDir, databaseUrl }: DataLocation): Record<string, string> => ({
      WHARF_DATA: dataDir,
      ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }),
    });
    const backup = (args: readonly string[], location = server.dataLocation) =>
      runInProcess(['backup', ...args], env(location));
    const create = async (...flags: string[]) => {
      const { code, stdout, stderr } = await backup(['create', target, '-o', 'json', ...flags]);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };

    before(async () => {
      server = await startTestServer(database);
      parent = mkdtempSync(join(tmpdir(), 'wharf-backup-'));
      target = join(parent, 'target');
      const api = grpcClient(server.url, server.token);
      ({ uid: group } = await api.call(createGroup, { parent: server.organization, group: { name: 'before' } }));
      api.close();
      const client = ociClient(server.url, basicAuth(server.token));
      await pushImage(client, REPO, 'v1');
      client.close();
    });
    after(async () => {
      rmSync(parent, { recursive: true, force: true });
      await server.remove();
    });

    it('creates a backup that is private and complete, and restores it', async () => {
      const { id, blobs } = await create('--with-master-key');
      assert.deepEqual([blobs.count, blobs.copied], [2, 2]);
      for (const path of globSync('**', { cwd: target })) {
        const { mode } = statSync(join(target, path));
        assert.equal(mode & 0o077, 0, `${path} has the mode ${mode.toString(8)}`);
      }
      const listed = await backup(['list', target]);
      assert.match(listed.stdout, new RegExp(`${id}.*included`));
      assert.equal((await backup(['verify', target])).code, 0);
      assert.equal((await create()).blobs.copied, 0, 'the second backup has no new blobs');

      const location = await database.createDataLocation();
      try {
        const restored = await backup(['restore', target, '--backup', id], location);
        assert.equal(restored.code, 0, restored.stderr);
        const store = await openStore(location);
        await assertConsistent(store.reader);
        const [last] = await store.reader.all<{ id: number }>('SELECT max(id) AS id FROM outbox');
        await store.close();
        const copy = await startServerOn(location);
        const api = grpcClient(copy.url, copy.token);
        assert.equal((await api.call(getGroup, { uid: group })).name, 'before');
        await api.call(createGroup, { parent: copy.organization, group: { name: 'after' } });
        api.close();
        const client = ociClient(copy.url, basicAuth(copy.token));
        const { status, body } = await client.send('GET', `/v2/${REPO}/blobs/${digestOf(Buffer.from(`${REPO}:v1`))}`);
        client.close();
        assert.deepEqual([status, body.toString()], [200, `${REPO}:v1`]);
        await copy.stop();
        const reopened = await openStore(location);
        const [next] = await reopened.reader.all<{ id: number }>('SELECT max(id) AS id FROM outbox');
        await reopened.close();
        assert.ok((next?.id ?? 0) > (last?.id ?? 0), 'ids of events go on');
        const again = await backup(['restore', target], location);
        assert.equal(again.code, 7);
        assert.match(again.stderr, /is not empty/);
      } finally {
        await location.remove();
      }
    });

    it('refuses a backup with a newer schema, and names both versions', async () => {
      const { id } = await create();
      const path = join(target, 'backups', id, 'manifest.json');
      const manifest = parseManifest(readFileSync(path, 'utf8'));
      const newer = {
        ...manifest,
        version: '99.0.0',
        database: { ...manifest.database, schema: 4711, requires: 4711 },
      };
      writeFileSync(path, formatManifest(newer));
      const location = await database.createDataLocation();
      const { code, stderr } = await backup(['restore', target, '--backup', id], location);
      assert.equal(code, 7);
      assert.match(stderr, /created by Wharfinger 99\.0\.0 with schema 4711; this is version \S+, which supports \d+/);
      await location.remove();
      rmSync(join(target, 'backups', id), { recursive: true });
    });

    it('names the damaged part that stops a restore, and then restores another backup', async () => {
      const intact = await create();
      const { id } = await create();
      const path = join(target, 'backups', id);
      const { parts } = parseManifest(readFileSync(join(path, 'manifest.json'), 'utf8'));
      const { name = '' } = parts.find((part) => /^(database|table-resource)\./.test(part.name)) ?? {};
      const bytes = readFileSync(join(path, name));
      writeFileSync(join(path, name), Buffer.concat([bytes, Buffer.alloc(1)]));
      const location = await database.createDataLocation();
      const { code, stderr } = await backup(['restore', target, '--backup', id], location);
      assert.equal(code, 1);
      assert.ok(stderr.includes(`${name} of the backup ${id} has ${bytes.length + 1} bytes instead of`), stderr);
      rmSync(join(path, name));
      const missing = await backup(['restore', target, '--backup', id], location);
      assert.equal(missing.code, 1);
      assert.ok(missing.stderr.includes(`${name} of the backup ${id} is missing: use another backup`), missing.stderr);
      const other = await backup(['restore', target, '--backup', intact.id], location);
      assert.equal(other.code, 0, other.stderr);
      await location.remove();
      rmSync(path, { recursive: true });
    });

    it('refuses a manifest that names files outside of the backup', async () => {
      const { id } = await create();
      const path = join(target, 'backups', id, 'manifest.json');
      const manifest = parseManifest(readFileSync(path, 'utf8'));
      writeFileSync(path, formatManifest({ ...manifest, files: ['../owner.json'] }));
      const location = await database.createDataLocation();
      const { code, stderr } = await backup(['restore', target, '--backup', id], location);
      assert.equal(code, 1);
      assert.match(stderr, /invalid names of files/);
      await location.remove();
      rmSync(join(target, 'backups', id), { recursive: true });
    });

    it('backs up a database of an older version as it is, and the start after a restore migrates it', async () => {
      const old = await database.createDataLocation();
      const restored = await database.createDataLocation();
      const other = join(parent, 'older');
      try {
        const { databaseUrl, dataDir } = old;
        const store = await (databaseUrl ? openPostgres(databaseUrl) : openSqlite(databaseFile(dataDir)));
        const dialect = databaseUrl ? postgresDialect : sqliteDialect;
        const older = migrations.filter(({ id }) => id <= OLDER_SCHEMA);
        await migrate(store, dialect, older);
        await store.write((tx) => putSetting(tx, 'kept', 'ü\n\\.'));
        mkdirSync(join(dataDir, 'registry'), { mode: 0o700 });
        const created = await backup(['create', other, '-o', 'json'], old);
        assert.equal(created.code, 0, created.stderr);
        assert.equal((await store.reader.all('SELECT id FROM migration')).length, older.length, 'it was not migrated');
        await store.close();
        const { code, stderr } = await backup(['restore', other], restored);
        assert.equal(code, 0, stderr);
        const migrated = await openStore(restored);
        assert.equal(await getSetting(migrated.reader, 'kept'), 'ü\n\\.');
        await assertConsistent(migrated.reader);
        await migrated.close();
      } finally {
        await old.remove();
        await restored.remove();
      }
    });

    it('does not start a server on a restore that has not finished', async () => {
      const location = await database.createDataLocation();
      mkdirSync(join(location.dataDir, 'restoring'), { recursive: true });
      await assert.rejects(startServerOn(location), /was not completely restored into .*: run 'wharf backup restore'/);
      await location.remove();
    });

    it('keeps garbage collection from deleting blobs', async () => {
      const store = await openStore(server.dataLocation);
      const registry = join(server.dataLocation.dataDir, 'registry');
      const unused = Buffer.from('unused');
      const digest = `sha256:${createHash('sha256').update(unused).digest('hex')}`;
      const path = join(registry, blobKey(digest));
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, unused, { mode: 0o600 });
      utimesSync(path, new Date(0), new Date(0));
      const collect = () => runInProcess(['registry', 'gc', '--grace', '1h'], env(server.dataLocation));
      await holdBlobs(store, 'test', Date.now() + 60_000);
      const held = await collect();
      assert.equal(held.code, 1);
      assert.match(held.stderr, /a backup is being created.*collect garbage again/);
      assert.ok(existsSync(path));
      await releaseBlobs(store, 'test');
      await store.close();
      assert.equal((await collect()).code, 0);
      assert.ok(!existsSync(path));
    });

    it('names a blob that the server has lost, and backs up the rest', async () => {
      const client = ociClient(server.url, basicAuth(server.token));
      const lost = Buffer.from('a lost layer');
      await client.pushBlob(REPO, lost);
      client.close();
      rmSync(join(server.dataLocation.dataDir, 'registry', blobKey(digestOf(lost))));
      const { code, stderr } = await backup(['create', target]);
      assert.equal(code, 10);
      assert.match(stderr, new RegExp(`complete except for 1 blob [^]*${digestOf(lost)}: its file is missing`));
      const verified = await backup(['verify', target]);
      assert.equal(verified.code, 1);
      assert.match(verified.stderr, new RegExp(`the server did not have the blob ${digestOf(lost)}`));
      const again = ociClient(server.url, basicAuth(server.token));
      await again.pushBlob(REPO, lost);
      again.close();
      await create('--keep', '1');
      assert.equal((await backup(['verify', target])).code, 0, 'a push repaired it');
      rmSync(join(server.dataLocation.dataDir, 'registry', blobKey(digestOf(lost))));
      assert.equal((await backup(['create', target, '--full'])).code, 10);
      const { code: verifiedCode, stdout } = await backup(['verify', target]);
      assert.equal(verifiedCode, 0, 'the backup before has it');
      assert.match(stdout, /^verified 2 backups with 3 blobs: /);
    });

    it('prunes no blob while a backup is created', async () => {
      await create('--keep', '1');
      const extra = join(target, blobKey(digestOf(Buffer.from('extra'))));
      mkdirSync(join(extra, '..'), { recursive: true });
      writeFileSync(extra, 'extra');
      const running = join(target, 'in-progress/other.json');
      mkdirSync(join(running, '..'), { recursive: true });
      const run = { kind: 'create', host: 'elsewhere', pid: 1, processes: '', begun: 0, expires: Date.now() + 60_000 };
      writeFileSync(running, JSON.stringify(run));
      const blocked = await backup(['prune', target, '--keep', '1']);
      assert.match(blocked.stdout, /blobs were not removed, because elsewhere is creating the backup other/);
      assert.ok(existsSync(extra));
      writeFileSync(running, JSON.stringify({ ...run, expires: Date.now() - 1 }));
      const pruned = await backup(['prune', target, '--keep', '1']);
      assert.match(pruned.stdout, /removed 0 backups and 1 blob with/);
      assert.ok(!existsSync(extra));
    });

    it('says what to do about a wrong target or place', async () => {
      const inData = await backup(['create', join(server.dataLocation.dataDir, 'backups')]);
      assert.match(inData.stderr, /is in the data directory, and would be lost with it/);
      const foreign = join(parent, 'foreign');
      mkdirSync(foreign);
      writeFileSync(join(foreign, 'other.txt'), '');
      assert.match((await backup(['create', foreign])).stderr, /is not empty and has no backups/);
      assert.match((await backup(['list', foreign])).stderr, /has no backups: check the name/);
      assert.match((await backup(['create', 'ftp://host/x'])).stderr, /ftp:\/\/ is not supported/);
      const unknown = await backup(['verify', target, '--backup', 'none']);
      assert.equal(unknown.code, 5);
      const missing = await backup(['create', target], { ...server.dataLocation, dataDir: join(parent, 'none') });
      assert.match(missing.stderr, /does not exist: start the server once, or give its data directory/);
      const keep = await backup(['prune', target, '--keep', 'many']);
      assert.equal(keep.code, 2);
      assert.match(keep.stderr, /a number of backups, such as 7, or an age, such as 30d/);
    });
  });
}
