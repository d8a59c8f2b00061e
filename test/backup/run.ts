/**
 * Backs up servers while clients write and push, kills them, and restores the backups elsewhere: on SQLite and
 * PostgreSQL to a directory, and on SQLite to a real S3 server. Kills and damages everything in between.
 *
 * Run it with `npm run test:backup`, or with `npm run test:backup -- SQLite` for some of the parts: SQLite, PostgreSQL,
 * S3, schedule.
 */
import assert from 'node:assert/strict';
import { copyFileSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Database, databases, findDatabase } from '../support/databases.ts';
import { testWithGoProgram } from '../support/go-program.ts';
import { basicAuth, fetchTokenForChallenge, ociClient } from '../support/oci-client.ts';
import { pollUntil } from '../support/poll-until.ts';
import { spawnServer } from '../support/process.ts';
import { commandEnv, createBackup, listBackups, wharf } from './commands.ts';
import { damageBackups, restoreDamaged } from './damage.ts';
import { killCreate, killRestore } from './interruptions.ts';
import { tryS3Client } from './s3-client.ts';
import { freePort, type S3Server, startVersitygw } from './versitygw.ts';
import { pushRandomImage, requireAcknowledged, requireConsistent, startWorkload, type Workload } from './workload.ts';

const RATE = 200;
/** Tokens name the address of the server, so that the restored one must have the same. */
const address = { WHARF_LISTEN: `127.0.0.1:${await freePort()}` };
const print = (line: string): void => void process.stdout.write(`backup: ${line}\n`);

async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work();
  print(`  ${name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  return result;
}

interface Backups {
  readonly workload: Workload;
  /** With the master key, created while clients were writing. */
  readonly backup: { readonly id: string; readonly moment: string };
  /** The former data directory. */
  readonly dataDir: string;
  /** A registry token that the killed server had issued. */
  readonly registryToken: string;
}

/** Creates backups of a server while clients use it, and kills it. */
async function backUpUnderLoad(database: Database, target: string): Promise<Backups & { remove(): Promise<void> }> {
  const location = await database.createDataLocation();
  const server = await spawnServer(location, address);
  const workload = await startWorkload(server.url, location, RATE);
  const begun = Date.now();
  await pollUntil(
    () => workload.count(),
    (count) => count > 2 * RATE,
  );
  const first = await createBackup(target, location);
  const backup = await createBackup(target, location, '--with-master-key');
  assert.ok(backup.blobs.copied < backup.blobs.count, 'the second backup copies only new blobs');
  assert.ok(first.blobs.copied === first.blobs.count, 'the first backup copies all blobs');
  const client = ociClient(server.url);
  const { headers } = await client.send('GET', '/v2/my-org/backup/manifests/0-0');
  const password = await mintOwnerToken(location.dataDir);
  const registryToken = await fetchTokenForChallenge(headers['www-authenticate'], password);
  client.close();
  const counts = { groups: workload.groups.length, images: workload.images.length };
  const rate = (counts.groups * 1000) / (Date.now() - begun);
  const stopped = workload.stop();
  await server.kill();
  await stopped;
  print(`  ${counts.groups} writes at ${Math.round(rate)}/s and ${counts.images} pushes during two backups`);
  return { workload, backup, dataDir: location.dataDir, registryToken, remove: () => location.remove() };
}

async function testDatabase(
  database: Database,
  target: string,
  { isDirectory }: { isDirectory: boolean },
): Promise<void> {
  const backups = await step('backup under load, kill -9 of the server', () => backUpUnderLoad(database, target));
  const { workload, backup, registryToken } = backups;
  const location = await database.createDataLocation();
  try {
    await step('verify', () => wharf(['backup', 'verify', target]));
    await step('restore elsewhere', () => wharf(['backup', 'restore', target, '--backup', backup.id], location));
    const again = await wharf(['backup', 'restore', target], location, 7);
    assert.match(again.stderr, /not empty/);
    await requireConsistent(location);
    const server = await spawnServer(location, address);
    await step('everything that was acknowledged is there', async () => {
      const found = await requireAcknowledged(server.url, location, workload, Date.parse(backup.moment));
      assert.ok(found.groups > RATE && found.images > 0, `too few for a test: ${JSON.stringify(found)}`);
      print(`  ${found.groups} groups and ${found.images} images from before ${backup.moment}`);
      const client = ociClient(server.url, `Bearer ${registryToken}`);
      const { status } = await client.send('GET', '/v2/my-org/backup/manifests/0-0');
      client.close();
      assert.equal(status, 200, 'a token that the former server issued is valid');
    });
    await step('the next backup copies only new blobs', async () => {
      const client = ociClient(server.url, basicAuth(await mintOwnerToken(location.dataDir)));
      await createBackup(target, location);
      const { blobs } = await pushRandomImage(client, 'new');
      client.close();
      const { blobs: copied } = await createBackup(target, location);
      assert.equal(copied.copied, blobs.length - 1, 'the configuration of the image is the same as in other images');
    });
    await step('restore without the master key', () => restoreWithoutKey(database, target, location.dataDir));
    if (isDirectory) {
      await step('kill -9 of create', () => killCreate(location));
      await step('kill -9 of restore', () => killRestore(target, database, workload, backup));
      await step('prune', async () => {
        const before = globSync('blobs/*/*/*', { cwd: target }).length;
        await wharf(['backup', 'prune', target, '--keep', '1']);
        assert.equal((await listBackups(target)).length, 1);
        assert.ok(globSync('blobs/*/*/*', { cwd: target }).length <= before);
        await wharf(['backup', 'verify', target]);
      });
      await step('damaged backups', async () => {
        await damageBackups(target, location);
        const other = await database.createDataLocation();
        await restoreDamaged(target, other);
        await other.remove();
      });
    }
    assert.equal(await server.stop(), 0);
  } finally {
    await location.remove();
    await backups.remove();
  }
}

/** Without the key a server does not start and says what is missing. With it, it does. */
async function restoreWithoutKey(database: Database, target: string, dataDir: string): Promise<void> {
  const location = await database.createDataLocation();
  try {
    const { stdout } = await wharf(['backup', 'restore', target], location);
    const [, key] = /The master key (\w+) is not in the backup: set WHARF_MASTER_KEY/.exec(stdout) ?? [];
    assert.ok(key, stdout);
    const { stderr } = await wharf(['serve', '--listen', '127.0.0.1:0'], location, 1);
    assert.match(stderr, new RegExp(`the master key is missing: .*WHARF_MASTER_KEY is not set.*\\(key id ${key}\\)`));
    copyFileSync(join(dataDir, 'master.key'), join(location.dataDir, 'master.key'));
    await (await spawnServer(location)).kill();
  } finally {
    await location.remove();
  }
}

/** Two workers with a schedule: one of them creates each backup, old ones are removed, metrics show the last. */
async function testSchedule(): Promise<void> {
  const target = mkdtempSync(join(tmpdir(), 'wharf-backup-schedule-'));
  const location = await findDatabase('SQLite').createDataLocation();
  const env = { WHARF_BACKUP_TO: target, WHARF_BACKUP_INTERVAL: '1s', WHARF_BACKUP_KEEP: '2', WHARF_WORKERS: '2' };
  rmSync(target, { recursive: true });
  const server = await spawnServer(location, env);
  const created = (): number => server.log.filter((line) => line.includes('created a scheduled backup')).length;
  try {
    await pollUntil(
      async () => created(),
      (count) => count >= 4,
    );
    const begun = server.log.filter((line) => line.includes('creating a scheduled backup')).length;
    assert.ok(begun <= created() + 1, 'one worker at a time creates a backup');
    assert.ok((await listBackups(target)).length <= 3, 'old backups are removed');
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const [, time] = /^wharf_backup_last_success_timestamp_seconds (\S+)$/m.exec(metrics) ?? [];
    assert.ok(Date.now() / 1000 - Number(time) < 60, `the metric says ${time}`);
    assert.match(metrics, /^wharf_backup_failures 0$/m);
    assert.equal(await server.stop(), 0);
    await createBackup(target, location, '--keep', '1');
    await wharf(['backup', 'verify', target]);
  } finally {
    await server.kill();
    rmSync(target, { recursive: true, force: true });
    await location.remove();
  }
}

async function testS3(server: S3Server): Promise<void> {
  Object.assign(commandEnv, server.env);
  await step('the S3 client', () => tryS3Client(server));
  const target = `s3://${server.bucket}/wharf/a?endpoint=${server.endpoint}`;
  await testDatabase(findDatabase('SQLite'), target, { isDirectory: false });
  assert.deepEqual(globSync('wharf/a/in-progress/*', { cwd: server.directory }), []);
}

const parts = process.argv.slice(2);
const isSelected = (name: string): boolean => parts.length === 0 || parts.includes(name);

for (const database of databases.filter(({ name }) => isSelected(name))) {
  print(`on ${database.name} to a directory`);
  const parent = mkdtempSync(join(tmpdir(), 'wharf-backup-test-'));
  await testDatabase(database, join(parent, 'target'), { isDirectory: true });
  rmSync(parent, { recursive: true });
}
if (isSelected('schedule')) await step('scheduled backups', testSchedule);
if (isSelected('S3')) {
  process.env.CGO_ENABLED = '0';
  const program = { directory: import.meta.dirname, target: 'github.com/versity/versitygw/cmd/versitygw' };
  await testWithGoProgram('backup-s3', program, async (path) => {
    print('on SQLite to S3 (versitygw)');
    const server = await startVersitygw(path);
    try {
      await testS3(server);
      return true;
    } finally {
      await server.stop();
    }
  });
}
