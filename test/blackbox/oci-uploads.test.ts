import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { registryDirectory } from '../../src/oci/registry.ts';
import { databases } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { onEveryDatabase } from '../support/oci-bench.ts';
import { codesIn, digestOf, type OciAnswer, type OciClient, ociClient, withDigest } from '../support/oci-client.ts';
import { startServerIn, startTestServer } from '../support/server.ts';

const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
const digest = digestOf(content);

const uploadsIn = (dataDir: string): string[] => readdirSync(join(registryDirectory(dataDir), 'uploads'));
const blobsIn = (dataDir: string): string[] =>
  readdirSync(join(registryDirectory(dataDir), 'blobs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);

async function begin(client: OciClient, name: string): Promise<string> {
  const { status, headers } = await client.send('POST', `/v2/${name}/blobs/uploads/`);
  assert.equal(status, 202);
  assert.match(headers.location ?? '', /\/[0-9a-f]{8}-[0-9a-f-]{27}\./);
  assert.equal(headers.range, '0-0');
  return headers.location ?? '';
}

const chunk = (client: OciClient, location: string, from: number, to: number, verb = 'PATCH'): Promise<OciAnswer> =>
  client.send(verb, location, {
    headers: { 'content-range': `${from}-${to - 1}`, 'content-type': 'application/octet-stream' },
    body: content.subarray(from, to),
  });

async function* pieces(source: Buffer, size: number, failAt = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  for (let at = 0; at < source.length; at += size) {
    if (at >= failAt) throw new Error('pulled the plug');
    yield source.subarray(at, at + size);
  }
}

onEveryDatabase('uploads', (bench) => {
  let repos = 0;
  const newName = async () => `${(await bench.newTeam()).name}/repo-${++repos}`;
  const isThere = async (name: string) => {
    const { status, body } = await bench.owner.send('GET', `/v2/${name}/blobs/${digest}`);
    return status === 200 && body.equals(content);
  };

  test('in chunks, the last one with the end or without', async () => {
    for (const last of ['PATCH', 'PUT']) {
      const name = await newName();
      let location = await begin(bench.owner, name);
      for (let at = 0; at < 200_000; at += 100_000) {
        const { status, headers } = await chunk(bench.owner, location, at, at + 100_000);
        assert.deepEqual([status, headers.range], [202, `0-${at + 99_999}`]);
        location = headers.location ?? '';
      }
      if (last === 'PATCH') {
        assert.equal((await chunk(bench.owner, location, 200_000, 300_000)).status, 202);
        assert.equal((await bench.owner.send('PUT', withDigest(location, digest))).status, 201);
      } else {
        const { status, headers } = await chunk(bench.owner, withDigest(location, digest), 200_000, 300_000, 'PUT');
        assert.deepEqual([status, headers.location], [201, `/v2/${name}/blobs/${digest}`]);
      }
      assert.ok(await isThere(name));
    }
  });

  test('as a stream of unknown length, as docker sends it', async () => {
    const name = await newName();
    const location = await begin(bench.owner, name);
    const patched = await bench.owner.send('PATCH', location, { body: pieces(content, 7_000) });
    assert.deepEqual([patched.status, patched.headers.range], [202, '0-299999']);
    assert.equal((await bench.owner.send('PUT', withDigest(patched.headers.location, digest))).status, 201);
    assert.ok(await isThere(name));
  });

  test('at once, by POST or by PUT, and an empty one', async () => {
    const name = await newName();
    const posted = await bench.owner.send('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: content });
    assert.deepEqual([posted.status, posted.headers['docker-content-digest']], [201, digest]);
    assert.ok(await isThere(name));
    const nothing = digestOf(Buffer.alloc(0));
    assert.equal((await bench.owner.send('POST', `/v2/${name}/blobs/uploads?digest=${nothing}`)).status, 201);
    const { status, headers, body } = await bench.owner.send('GET', `/v2/${name}/blobs/${nothing}`);
    assert.deepEqual([status, headers['content-length'], body.length], [200, '0', 0]);
  });

  test('a chunk out of order is refused, and the upload goes on where it was', async () => {
    const name = await newName();
    const location = await begin(bench.owner, name);
    await chunk(bench.owner, location, 0, 100_000);
    for (const [from, to] of [
      [150_000, 200_000],
      [0, 100_000],
      [99_999, 150_000],
    ] as const) {
      const { status, headers } = await chunk(bench.owner, location, from, to);
      assert.deepEqual([status, headers.range, headers.location], [416, '0-99999', location]);
    }
    const late = await chunk(bench.owner, withDigest(location, digest), 200_000, 300_000, 'PUT');
    assert.equal(late.status, 416);
    const status = await bench.owner.send('GET', location);
    assert.deepEqual([status.status, status.headers.range, status.body.length], [204, '0-99999', 0]);
    assert.equal((await chunk(bench.owner, location, 100_000, 300_000)).status, 202);
    assert.equal((await bench.owner.send('PUT', withDigest(location, digest))).status, 201);
  });

  test('ranges and lengths that do not agree, or mean nothing, are refused', async () => {
    const name = await newName();
    const location = await begin(bench.owner, name);
    for (const range of ['0-9', '9-0', '-5', 'x-y', '0-', 'bytes 0-2/3, 5-6', '0-99999999999999999999']) {
      const headers = { 'content-range': range };
      const { status } = await bench.owner.send('PATCH', location, { headers, body: Buffer.alloc(5) });
      assert.equal(status, 400, range);
    }
    // Without a length it shows only when the bytes have come; what came is kept.
    const headers = { 'content-range': '0-9' };
    const short = await bench.owner.send('PATCH', location, { headers, body: pieces(Buffer.alloc(5), 5) });
    assert.deepEqual([short.status, codesIn(short)], [400, ['SIZE_INVALID']]);
    assert.equal((await bench.owner.send('GET', location)).headers.range, '0-4');
    const long = await bench.owner.send('PATCH', location, {
      headers: { 'content-range': '5-9' },
      body: pieces(Buffer.alloc(50), 50),
    });
    assert.equal(long.status, 413);
  });

  test('a digest that is wrong or none never becomes a blob', async () => {
    const name = await newName();
    const wrong = digestOf(Buffer.from('something else'));
    const before = blobsIn(bench.server.home.dataDir);
    for (const verb of ['POST', 'PUT']) {
      const path = verb === 'POST' ? `/v2/${name}/blobs/uploads/` : await begin(bench.owner, name);
      const { status, body } = await bench.owner.send(verb, withDigest(path, wrong), { body: Buffer.from('content') });
      assert.equal(status, 400);
      assert.match(body.toString(), /DIGEST_INVALID/);
      for (const none of [
        '',
        'sha256:',
        'md5:d41d8cd98f00b204e9800998ecf8427e',
        'sha256:../../../etc/passwd',
        'SHA256:AB',
      ]) {
        const refused = await bench.owner.send(verb, withDigest(path, none), { body: Buffer.from('content') });
        assert.deepEqual([refused.status, codesIn(refused)], [400, ['DIGEST_INVALID']], none);
      }
    }
    assert.deepEqual(blobsIn(bench.server.home.dataDir), before);
    assert.equal((await bench.owner.send('HEAD', `/v2/${name}/blobs/${wrong}`)).status, 404);
  });

  test('a client that breaks off can go on', async () => {
    const name = await newName();
    const location = await begin(bench.owner, name);
    await assert.rejects(bench.owner.send('PATCH', location, { body: pieces(content, 50_000, 150_000) }));
    const { headers } = await until(
      () => bench.owner.send('GET', location),
      ({ headers }) => headers.range !== '0-0',
    );
    const offset = Number(headers.range?.toString().slice(2)) + 1;
    assert.ok(offset > 0 && offset <= 150_000);
    await until(
      () => chunk(bench.owner, location, offset, 300_000),
      ({ status }) => status !== 409,
    );
    assert.equal((await bench.owner.send('PUT', withDigest(location, digest))).status, 201);
    assert.ok(await isThere(name));
  });

  test('a body shorter than it said is no body', async () => {
    const name = await newName();
    const before = uploadsIn(bench.server.home.dataDir).length;
    const outgoing = request(new URL(`/v2/${name}/blobs/uploads/?digest=${digest}`, bench.server.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${bench.server.token}`, 'content-length': content.length },
    });
    const failed = new Promise((resolve) => outgoing.once('error', resolve));
    outgoing.write(content.subarray(0, 1000), () => outgoing.destroy());
    await failed;
    // Nobody could go on with it, so nothing of it stays.
    await until(
      async () => uploadsIn(bench.server.home.dataDir).length,
      (uploads) => uploads <= before,
    );
    assert.equal((await bench.owner.send('HEAD', `/v2/${name}/blobs/${digest}`)).status, 404);
  });

  test('two at once do not mix: one of them is told so', async () => {
    const name = await newName();
    const location = await begin(bench.owner, name);
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    async function* slowly() {
      yield content.subarray(0, 100_000);
      await held;
      yield content.subarray(100_000);
    }
    const first = bench.owner.send('PATCH', location, { body: slowly() });
    const second = await until(
      () => bench.owner.send('PATCH', location, { body: pieces(Buffer.alloc(0), 1) }),
      ({ status }) => status !== 202,
    );
    assert.equal(second.status, 409);
    release();
    assert.equal((await first).status, 202);
    assert.equal((await bench.owner.send('PUT', withDigest(location, digest))).status, 201);
  });

  test('an upload belongs to its repo and to whoever began it', async () => {
    const team = await bench.newTeam();
    const [name, other] = [`${team.name}/mine`, `${team.name}/other`];
    const [me, them] = [
      await bench.withRole('registry.push', team.uid),
      await bench.withRole('registry.push', team.uid),
    ];
    const location = await begin(me, name);
    await begin(me, other);
    for (const verb of ['GET', 'PATCH', 'PUT', 'DELETE']) {
      for (const [client, path] of [
        [them, location],
        [me, location.replace(name, other)],
        [me, location.slice(0, -1)],
        [me, `/v2/${name}/blobs/uploads/${crypto.randomUUID()}`],
        [me, `/v2/${name}/blobs/uploads/..%2f..%2fx`],
      ] as const) {
        const { status, body } = await client.send(verb, withDigest(path, digest));
        assert.equal(status, 404, `${verb} ${path}: ${body}`);
      }
    }
    assert.equal((await me.send('DELETE', location)).status, 204);
    for (const verb of ['GET', 'PATCH', 'DELETE']) assert.equal((await me.send(verb, location)).status, 404, verb);
  });
});

onEveryDatabase(
  'uploads with a limit',
  (bench) => {
    test('what is larger than allowed is refused, at best before it comes', async () => {
      const team = await bench.newTeam();
      const name = `${team.name}/small`;
      const large = Buffer.alloc(1024 * 1024 + 1);
      const path = `/v2/${name}/blobs/uploads/`;
      const declared = await bench.owner.send('POST', withDigest(path, digestOf(large)), { body: large });
      assert.deepEqual([declared.status, codesIn(declared)], [413, ['SIZE_INVALID']]);
      const location = await begin(bench.owner, name);
      const streamed = await bench.owner.send('PATCH', location, { body: pieces(large, 65_536) });
      assert.equal(streamed.status, 413);
      assert.equal((await bench.owner.pushBlob(name, large.subarray(1))).length, 71);
    });
  },
  { env: { WHARF_MAX_BLOB: '1MiB' } },
);

for (const database of databases) {
  test(`an upload survives a restart on ${database.name}`, async (t) => {
    const first = await startTestServer(database);
    t.after(() => first.home.remove());
    const client = ociClient(first.url, `Bearer ${first.token}`);
    const location = await begin(client, 'my-org/app');
    await chunk(client, location, 0, 123_456);
    client.close();
    await first.stop();

    const second = await startServerIn(first.home);
    t.after(() => second.stop());
    const again = ociClient(second.url, `Bearer ${await mintOwnerToken(first.home.dataDir)}`);
    t.after(() => again.close());
    assert.equal((await again.send('GET', location)).headers.range, '0-123455');
    assert.equal((await chunk(again, location, 123_456, 300_000)).status, 202);
    assert.equal((await again.send('PUT', withDigest(location, digest))).status, 201);
    assert.deepEqual((await again.send('GET', `/v2/my-org/app/blobs/${digest}`)).body, content);
  });
}
