import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { parseDigest } from '../../src/blobs/digest.ts';
import { PROGRAM } from '../../src/cli/built-program.testing.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { registryDirectory } from '../../src/oci/registry-directory.ts';
import { databases } from '../support/databases.ts';
import {
  buildImage,
  buildIndex,
  buildManifest,
  CONFIG,
  digestOf,
  errorCodesIn,
  IMAGE,
  INDEX,
  type OciClient,
  ociClient,
  pushImage,
} from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';

const put = (client: OciClient, name: string, reference: string, body: Buffer | string, type = IMAGE) =>
  client.send('PUT', `/v2/${name}/manifests/${reference}`, { headers: { 'content-type': type }, body });

onEveryDatabase('registry errors', (fixture) => {
  test('a manifest with missing blobs or manifests is refused', async () => {
    const team = await fixture.newTeam();
    const [name, other] = [`${team.name}/here`, `${team.name}/there`];
    const { manifest, blobs } = buildImage('amd64', Buffer.from('one'), Buffer.from('two'));
    // Blobs of another repo do not count.
    for (const blob of blobs) await fixture.owner.pushBlob(other, blob);
    await fixture.owner.pushBlob(name, blobs[0] ?? Buffer.alloc(0));
    const refused = await put(fixture.owner, name, 'v1', manifest.bytes);
    assert.deepEqual([refused.status, errorCodesIn(refused)], [400, ['MANIFEST_BLOB_UNKNOWN']]);
    for (const missing of blobs.slice(1)) assert.ok(refused.body.includes(digestOf(missing)));
    assert.ok(!refused.body.includes(digestOf(blobs[0] ?? Buffer.alloc(0))));

    await fixture.owner.pushManifest(other, 'v1', manifest);
    const index = buildIndex({ amd64: manifest });
    const sparse = await put(fixture.owner, name, 'v1', index.bytes, INDEX);
    assert.deepEqual([sparse.status, errorCodesIn(sparse)], [400, ['MANIFEST_BLOB_UNKNOWN']]);
    assert.equal((await fixture.owner.send('GET', `/v2/${name}/manifests/v1`)).status, 404);
  });

  test('an invalid manifest is refused', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/bad`;
    const config = await fixture.owner.pushBlob(name, Buffer.from('{}'));
    const image = { schemaVersion: 2, config: { mediaType: CONFIG, digest: config, size: 2 }, layers: [] };
    const bad: readonly (readonly [string | Buffer, string?])[] = [
      [''],
      ['nonsense'],
      ['[]'],
      ['null'],
      [Buffer.from([0xff, 0xfe, 0x00])],
      [`${'['.repeat(1000)}${']'.repeat(1000)}`],
      [`{"schemaVersion":2,"a":${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}}`],
      [JSON.stringify({ ...image, schemaVersion: 1 })],
      [JSON.stringify({ ...image, config: 'x' })],
      [JSON.stringify({ ...image, config: { ...image.config, digest: 'sha256:../../x' } })],
      [JSON.stringify({ ...image, config: { ...image.config, size: -1 } })],
      [JSON.stringify({ ...image, layers: 'x' })],
      [JSON.stringify({ ...image, mediaType: INDEX })],
      [JSON.stringify({ ...image, manifests: [] })],
      [JSON.stringify(image), 'text/html'],
      [JSON.stringify(image), 'application/vnd.docker.distribution.manifest.v1+prettyjws'],
      [JSON.stringify({ ...image, annotations: { __proto__: null, a: 1 } })],
    ];
    for (const [body, type] of bad) {
      const response = await put(fixture.owner, name, 'v1', body, type);
      assert.deepEqual(
        [response.status, errorCodesIn(response)],
        [400, ['MANIFEST_INVALID']],
        body.toString().slice(0, 100),
      );
    }
    assert.equal((await put(fixture.owner, name, 'v1', JSON.stringify(image), `${IMAGE}; charset=utf-8`)).status, 201);
  });

  test('a manifest of more than 4 MiB is refused, with and without content-length', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/huge`;
    const config = await fixture.owner.pushBlob(name, Buffer.from('{}'));
    const sized = (size: number) => {
      const image = {
        schemaVersion: 2,
        mediaType: IMAGE,
        config: { mediaType: CONFIG, digest: config, size: 2 },
        layers: [],
        annotations: { pad: '' },
      };
      image.annotations.pad = 'x'.repeat(size - JSON.stringify(image).length);
      return Buffer.from(JSON.stringify(image));
    };
    const limit = 4 * 1024 * 1024;
    assert.equal((await put(fixture.owner, name, 'fits', sized(limit))).status, 201);
    const large = await put(fixture.owner, name, 'large', sized(limit + 1));
    assert.deepEqual([large.status, errorCodesIn(large)], [413, ['SIZE_INVALID']]);
    async function* pieces() {
      const all = sized(limit + 100_000);
      for (let at = 0; at < all.length; at += 65_536) yield all.subarray(at, at + 65_536);
    }
    const streamed = await fixture.owner.send('PUT', `/v2/${name}/manifests/large`, {
      headers: { 'content-type': IMAGE },
      body: pieces(),
    });
    assert.equal(streamed.status, 413);
  });

  test('a manifest with another digest than its own is refused', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/forged`;
    const index = buildManifest({ schemaVersion: 2, mediaType: INDEX, manifests: [] } as { mediaType: string });
    for (const digest of [
      digestOf(Buffer.from('x')),
      digestOf(index.bytes, 'sha512').replace(/.$/, (c) => (c === '0' ? '1' : '0')),
    ]) {
      const response = await put(fixture.owner, name, digest, index.bytes, INDEX);
      assert.deepEqual([response.status, errorCodesIn(response)], [400, ['DIGEST_INVALID']]);
    }
    assert.equal((await put(fixture.owner, name, digestOf(index.bytes, 'sha512'), index.bytes, INDEX)).status, 201);
  });

  test('malicious names, tags and digests are refused', async () => {
    const team = await fixture.newTeam();
    await pushImage(fixture.owner, `${team.name}/plain`, 'v1');
    const manifests = `/v2/${team.name}/plain/manifests/`;
    for (const [path, code] of [
      [`/v2/${team.name}/UPPER/manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}/a..b/manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}/%2e%2e/manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}//manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}/a%00b/manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}/${'a'.repeat(256)}/manifests/v1`, 'NAME_INVALID'],
      [`/v2/${'a/'.repeat(500)}manifests/v1`, 'NAME_INVALID'],
      [`/v2/${team.name}/a"b/manifests/v1`, 'NAME_INVALID'],
      [`${manifests}.hidden`, 'TAG_INVALID'],
      [`${manifests}%2e%2e`, 'TAG_INVALID'],
      [`${manifests}${'t'.repeat(129)}`, 'TAG_INVALID'],
      [`${manifests}a%2Fb`, 'TAG_INVALID'],
      [`${manifests}%zz`, 'TAG_INVALID'],
      [`${manifests}sha256:baddigest`, 'DIGEST_INVALID'],
      [`${manifests}sha256:${'A'.repeat(64)}`, 'DIGEST_INVALID'],
      [`/v2/${team.name}/plain/blobs/sha256:..%2f..%2f..%2fetc%2fpasswd`, 'DIGEST_INVALID'],
      [`/v2/${team.name}/plain/blobs/..%2f..%2fwharfinger.db`, 'DIGEST_INVALID'],
      [`/v2/${team.name}/plain/referrers/x`, 'DIGEST_INVALID'],
    ] as const) {
      const response = await fixture.owner.send('GET', path);
      assert.deepEqual([response.status, errorCodesIn(response)], [400, [code]], path);
    }
    for (const path of [
      '/v2/../../etc/passwd',
      '/v2/a',
      '/v2//manifests/x',
      '/v2/a/b/tags',
      '/v2/x/blobs/uploads/y/z',
    ]) {
      assert.equal((await fixture.owner.send('GET', path)).status, 404, path);
    }
    // Some clients escape the colon.
    const { headers } = await fixture.owner.send('GET', `${manifests}v1`);
    const escaped = encodeURIComponent(String(headers['docker-content-digest']));
    assert.equal((await fixture.owner.send('GET', manifests + escaped)).status, 200);
  });

  test('of concurrent pushes of one tag the last one wins, and the history has all', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/raced`;
    const images = Array.from({ length: 8 }, (_, i) => buildImage('amd64', Buffer.from(`layer ${i}`)));
    for (const { blobs } of images) for (const blob of blobs) await fixture.owner.pushBlob(name, blob);
    await Promise.all(images.map(({ manifest }) => fixture.owner.pushManifest(name, 'v1', manifest)));
    const { headers, body } = await fixture.owner.send('GET', `/v2/${name}/manifests/v1`);
    const rows = await fixture.db.all<{ digest: string }>(
      `SELECT h.digest FROM tag_history h JOIN resource r ON r.kind = 'repo' AND r.uid = h.repo
        WHERE r.parent = $1 AND h.name = 'v1' ORDER BY h.id`,
      team.uid,
    );
    assert.deepEqual(new Set(rows.map((row) => row.digest)), new Set(images.map(({ manifest }) => manifest.digest)));
    assert.equal(rows.length, images.length);
    assert.equal(rows.at(-1)?.digest, headers['docker-content-digest']);
    assert.equal(digestOf(body), headers['docker-content-digest']);
  });

  test('a truncated blob file is not served, and a push of the same blob replaces it', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/damaged`;
    const content = Buffer.from(`whole ${team.name}`);
    const digest = await fixture.owner.pushBlob(name, content);
    const { hex } = parseDigest(digest);
    const blobs = join(registryDirectory(fixture.server.dataLocation.dataDir), 'blobs/sha256');
    truncateSync(join(blobs, hex.slice(0, 2), hex), 3);
    for (const headers of [{}, { range: 'bytes=0-1' }]) {
      const response = await fixture.owner.send('GET', `/v2/${name}/blobs/${digest}`, { headers });
      assert.deepEqual([response.status, errorCodesIn(response)], [404, ['BLOB_UNKNOWN']]);
      assert.match(response.body.toString(), /the server has lost the content of sha256:\w+; push the image again/);
    }
    assert.equal((await fixture.owner.send('HEAD', `/v2/${name}/blobs/${digest}`)).status, 404);
    const mount = `/v2/${name}-other/blobs/uploads/?mount=${digest}&from=${name}`;
    assert.equal((await fixture.owner.send('POST', mount)).status, 202, 'the client has to upload it');
    const metrics = await (await fetch(`${fixture.server.url}/metrics`)).text();
    assert.match(metrics, /^wharf_registry_damaged_blobs_total\{problem="size"\} [4-9]/m);

    await fixture.owner.pushBlob(name, content);
    assert.equal((await fixture.owner.send('HEAD', `/v2/${name}/blobs/${digest}`)).status, 200);
    assert.deepEqual((await fixture.owner.send('GET', `/v2/${name}/blobs/${digest}`)).body, content);
    assert.equal((await fixture.owner.send('POST', mount)).status, 201);
  });

  test('errors contain no internals', async () => {
    const team = await fixture.newTeam();
    const response = await fixture.owner.send('GET', `/v2/${team.name}/x/tags/list?last=%00`);
    assert.ok(response.status === 404 || response.status === 400, String(response.status));
    assert.ok(!/at .*\.ts|SELECT|sqlite/i.test(response.body.toString()));
  });
});

const [sqlite] = databases;

test('a full disk during a push gets a clear error, leaves no partial blob, and the server continues', {
  skip: process.platform === 'win32',
}, async (t) => {
  const dataLocation = (await sqlite?.createDataLocation()) ?? assert.fail();
  t.after(() => dataLocation.remove());
  // Limits files to 16 or 32 MiB, depending on the block size of the shell. For a process this is like a full disk.
  const child = spawn('sh', ['-c', 'ulimit -f 32768 && exec "$0" "$@"', process.execPath, PROGRAM, 'serve'], {
    env: { PATH: process.env.PATH ?? '', WHARF_LISTEN: '127.0.0.1:0', WHARF_DATA: dataLocation.dataDir },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let url = '';
  for await (const line of createInterface({ input: child.stderr })) {
    url = /"url":"(http:[^"]+)"/.exec(line)?.[1] ?? '';
    if (url) break;
  }
  child.stderr.resume();
  const client = ociClient(url, `Bearer ${await mintOwnerToken(dataLocation.dataDir)}`);
  t.after(() => client.close());
  await pushImage(client, 'my-org/app', 'before');
  const filesBefore = readdirSync(registryDirectory(dataLocation.dataDir), { recursive: true }).length;

  const large = Buffer.alloc(40 * 1024 * 1024, 'full');
  const response = await client.send('POST', `/v2/my-org/app/blobs/uploads/?digest=${digestOf(large)}`, {
    body: large,
  });
  assert.deepEqual([response.status, errorCodesIn(response)], [507, ['UNKNOWN']]);
  assert.match(response.body.toString(), /the storage for blobs is full/);
  assert.equal((await client.send('HEAD', `/v2/my-org/app/blobs/${digestOf(large)}`)).status, 404);
  assert.equal(readdirSync(registryDirectory(dataLocation.dataDir), { recursive: true }).length, filesBefore);
  const manifest = await pushImage(client, 'my-org/app', 'after');
  assert.deepEqual((await client.send('GET', '/v2/my-org/app/manifests/after')).body, manifest.bytes);
});
