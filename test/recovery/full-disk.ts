import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { ExitCode } from '../../src/cli/exit-codes.ts';
import { mintOwnerToken, type Owner } from '../../src/identity/owner/owner-key.ts';
import { reserveIn } from '../../src/store/disk-reserve.ts';
import { openStore } from '../../src/store/open.ts';
import { findDatabase } from '../support/databases.ts';
import { digestOf, errorCodesIn, type OciResponse, ociClient, pushImage, withDigest } from '../support/oci-client.ts';
import { startTestServer } from '../support/server.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';

async function serveOn(t: TestContext, disk: SmallDisk) {
  const child = spawn(...disk.command('serve'), {
    env: { PATH: process.env.PATH ?? '', WHARF_LISTEN: '127.0.0.1:0', WHARF_DATA: disk.path },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const log: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      log.push(line);
      const found = /"url":"(http:[^"]+)"/.exec(line)?.[1];
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error(log.join('\n'))));
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return { url, log, stop };
}

/** Creates a group and returns the status and the message of the response. */
async function createGroup(url: string, token: string, parent: string, name: string) {
  const response = await fetch(`${url}/iam/v2/groups/${parent}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  });
  return { status: response.status, text: await response.text() };
}

const assertFull = (response: OciResponse, pattern: RegExp): void => {
  assert.deepEqual([response.status, errorCodesIn(response)], [507, ['UNKNOWN']]);
  assert.match(response.body.toString(), pattern);
  assert.doesNotMatch(response.body.toString(), /wharf-disk/, 'clients see no path');
};

test('a server on a full disk answers reads, refuses writes, and goes on when space is freed', async (t) => {
  const disk = await mountSmallDisk('80m');
  if (!disk) return t.skip('this machine does not allow tests to mount a file system');
  t.after(() => disk.remove());
  const { url, log, stop } = await serveOn(t, disk);
  const { organization } = JSON.parse(readFileSync(join(disk.outside, 'owner.json'), 'utf8')) as Owner;
  const token = await mintOwnerToken(disk.outside);
  const client = ociClient(url, `Bearer ${token}`);
  t.after(() => client.close());
  const create = (name: string) => createGroup(url, token, organization, name);
  const image = await pushImage(client, 'my-org/app', 'kept');
  const unused = await client.pushBlob('my-org/app', Buffer.alloc(8_000_000, 'unused'));
  await client.send('DELETE', `/v2/my-org/app/blobs/${unused}`);
  const begun = await client.send('POST', '/v2/my-org/app/blobs/uploads/');
  assert.equal((await create('before')).status, 200);
  // As the server creates it on a larger disk.
  writeFileSync(reserveIn(disk.outside), Buffer.alloc(20 * 1024 * 1024), { mode: 0o600 });
  disk.fill();

  const blob = Buffer.alloc(3_000_000, 'new');
  assertFull(await client.send('PUT', withDigest(begun.headers.location, digestOf(blob)), { body: blob }), /is full/);
  // The log of SQLite may have room for some small changes.
  const locations: string[] = [];
  let upload = await client.send('POST', '/v2/my-org/app/blobs/uploads/');
  for (; upload.status === 202; upload = await client.send('POST', '/v2/my-org/app/blobs/uploads/')) {
    locations.push(String(upload.headers.location));
  }
  assertFull(upload, /the disk of the database is full/);
  for (const location of locations) await client.send('DELETE', location);
  assertFull(
    await client.send('POST', `/v2/my-org/app/blobs/uploads/?digest=${digestOf(blob)}`, { body: blob }),
    /is full/,
  );
  const refused = await create('refused');
  assert.equal(refused.status, 503, refused.text);
  assert.match(refused.text, /"message":"Unavailable: the disk of the database is full".*"cause":"DISK_FULL"/);
  assert.deepEqual((await client.send('GET', '/v2/my-org/app/manifests/kept')).body, image.bytes);
  const listed = await fetch(`${url}/iam/v2/groups`, { headers: { authorization: `Bearer ${token}` } });
  assert.match(await listed.text(), /"name":"before"/);
  const reported = log.filter((line) => line.includes('the database cannot be used: its disk is full; free space'));
  assert.equal(reported.length, 1, 'once, not for each request');
  assert.ok(reported[0]?.includes(join(disk.path, 'wharfinger.db')), reported[0]);

  disk.fill();
  const collected = disk.wharf('registry', 'gc', '--grace', '0s');
  assert.equal(collected.status, 0, collected.stderr);
  assert.match(collected.stdout, /removed 1 blobs, .*: 7\.6 MiB/);
  assert.equal((await create('after')).status, 200);
  await pushImage(client, 'my-org/app', 'after');

  const active = await client.send('POST', '/v2/my-org/app/blobs/uploads/');
  const unsafe = disk.wharf('registry', 'gc', '--grace', '0s');
  assert.equal(unsafe.status, ExitCode.precondition);
  assert.match(unsafe.stderr, /1 uploads were active in the last 5 minutes: wait .*, or use --grace 1h/);
  assert.equal((await client.send('DELETE', String(active.headers.location))).status, 204);

  const second = await client.pushBlob('my-org/app', Buffer.alloc(5_000_000, 'unused'));
  await client.send('DELETE', `/v2/my-org/app/blobs/${second}`);
  await stop();
  writeFileSync(reserveIn(disk.outside), Buffer.alloc(20 * 1024 * 1024), { mode: 0o600 });
  disk.fill();
  const failed = disk.wharf('serve', '--listen', '127.0.0.1:0');
  assert.equal(failed.status, 1);
  assert.match(
    failed.stderr,
    /^wharf: cannot start: cannot open the database .*wharfinger\.db: .*: its disk is full; free space, for example with/m,
  );
  const stopped = disk.wharf('registry', 'gc', '--grace', '0s');
  assert.equal(stopped.status, 0, stopped.stderr);
  assert.match(stopped.stderr, /^wharf: the disk is full; using the reserve\n/);
  assert.match(stopped.stdout, /removed 1 blobs, .*: 4\.8 MiB/);
  const again = await serveOn(t, disk);
  const rest = await (
    await fetch(`${again.url}/iam/v2/groups`, { headers: { authorization: `Bearer ${token}` } })
  ).text();
  for (const name of ['before', 'after']) assert.ok(rest.includes(`"name":"${name}"`));
  assert.ok(!rest.includes('refused'));
  await again.stop();
});

test('a full disk of PostgreSQL is answered in the same way', async (t) => {
  const server = await startTestServer(findDatabase('PostgreSQL'));
  t.after(() => server.remove());
  const client = ociClient(server.url, `Bearer ${server.token}`);
  t.after(() => client.close());
  await pushImage(client, 'my-org/app', 'kept');
  const store = await openStore(server.dataLocation);
  t.after(() => store.close());
  // PostgreSQL itself raises the error that it raises when it cannot extend a file.
  await store.write(async (tx) => {
    await tx.run(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE disk_full USING MESSAGE = 'could not extend file "base/1/2": No space left on device'; END$$`);
    for (const table of ['resource', 'upload']) {
      await tx.run(`CREATE TRIGGER full_disk BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION fail()`);
    }
  });
  const refused = await createGroup(server.url, server.token, server.organization, 'refused');
  assert.equal(refused.status, 503, refused.text);
  assert.match(refused.text, /the disk of the database is full.*"cause":"DISK_FULL"/);
  assertFull(await client.send('POST', '/v2/my-org/app/blobs/uploads/'), /the disk of the database is full/);
  assert.equal((await client.send('GET', '/v2/my-org/app/manifests/kept')).status, 200);
  await store.write(async (tx) => void (await tx.run('DROP FUNCTION fail CASCADE')));
  assert.equal((await createGroup(server.url, server.token, server.organization, 'after')).status, 200);
  await pushImage(client, 'my-org/app', 'after');
});
