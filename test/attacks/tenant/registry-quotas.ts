// A tenant fills the disk of the registry: with images, or with uploads that it never finishes.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openFilesystemBlobs } from '../../../src/blobs/filesystem.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ReposService } from '../../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { collectGarbage } from '../../../src/oci/gc/gc.ts';
import { registryDirectory } from '../../../src/oci/registry-directory.ts';
import { openStore } from '../../../src/store/open.ts';
import {
  buildManifest,
  CONFIG,
  digestOf,
  errorCodesIn,
  IMAGE,
  type OciClient,
  type OciResponse,
  ociClient,
  withDigest,
} from '../../support/oci-client.ts';
import { onEveryDatabase } from '../../support/oci-fixture.ts';
import { startServerOn, type TestServer } from '../../support/server.ts';

const KIB = 1024;
const env = { WHARF_MAX_OPEN_UPLOADS: '3', WHARF_MAX_ORG_STORAGE: '100KiB' };

function assertRefused(response: OciResponse, organization: string): void {
  assert.equal(response.status, 429, response.body.toString());
  assert.deepEqual(errorCodesIn(response), ['TOOMANYREQUESTS']);
  assert.ok(Number(response.headers['retry-after']) > 0);
  assert.match(response.body.toString(), new RegExp(`organization:${organization}`));
}

onEveryDatabase(
  'registry quotas',
  (fixture) => {
    let other: TestServer;
    let second: OciClient;
    before(async () => {
      // A second server on the same database and the same files.
      other = await startServerOn(fixture.server.dataLocation, { env });
      second = ociClient(other.url, `Bearer ${other.token}`);
    });
    after(async () => {
      second.close();
      await other.stop();
    });
    let organizations = 0;
    async function newOrganization() {
      const name = `tenant-${++organizations}`;
      const { uid } = await fixture.api.call(GroupsService.method.createGroup, { group: { name } });
      return { uid, name };
    }
    const begin = (name: string, client = fixture.owner) => client.send('POST', `/v2/${name}/blobs/uploads/`);
    const locationOf = ({ headers }: OciResponse): string => headers.location ?? '';
    const patch = (location: string, body: Uint8Array | AsyncIterable<Uint8Array>) =>
      fixture.owner.send('PATCH', location, { body, headers: { 'content-type': 'application/octet-stream' } });
    const whole = (name: string, content: Uint8Array, client = fixture.owner) =>
      client.send('POST', withDigest(`/v2/${name}/blobs/uploads/`, digestOf(content)), { body: content });
    async function collect(): Promise<void> {
      const store = await openStore(fixture.server.dataLocation);
      try {
        const blobs = await openFilesystemBlobs(registryDirectory(fixture.server.dataLocation.dataDir), {
          clock: Date.now,
        });
        await collectGarbage({ store, blobs, now: Date.now() + 48 * 3_600_000, graceMs: 3_600_000 });
      } finally {
        await store.close();
      }
    }

    test('unfinished uploads are limited, also on two servers at once', async () => {
      const { uid, name } = await newOrganization();
      await fixture.owner.pushBlob(`${name}/app`, Buffer.from('first'));
      const begun = await Promise.all(
        Array.from({ length: 10 }, (_, i) => begin(`${name}/app`, i % 2 ? second : fixture.owner)),
      );
      const open = begun.filter(({ status }) => status === 202);
      assert.equal(open.length, 3);
      assertRefused(begun.find(({ status }) => status !== 202) ?? assert.fail(), uid);
      assertRefused(await begin(`${name}/another`), uid);
      assertRefused(await whole(`${name}/app`, Buffer.from('whole')), uid);
      assert.equal((await begin(`${(await newOrganization()).name}/app`)).status, 202);
      // One that is cancelled, one that is finished and one that failed no longer count.
      const [cancelled, finished, failed] = open.map(locationOf);
      assert.equal((await fixture.owner.send('DELETE', cancelled ?? '')).status, 204);
      const done = await fixture.owner.send('PUT', withDigest(finished, digestOf(Buffer.from('x'))), { body: 'x' });
      assert.equal(done.status, 201);
      const wrong = await fixture.owner.send('PUT', withDigest(failed, digestOf(Buffer.from('y'))), { body: 'z' });
      assert.equal(wrong.status, 400);
      for (let i = 0; i < 3; i++) assert.equal((await begin(`${name}/app`)).status, 202, String(i));
      assertRefused(await begin(`${name}/app`), uid);
      // Garbage collection cancels those that are abandoned.
      await collect();
      assert.equal((await begin(`${name}/app`)).status, 202);
    });

    test('unfinished uploads cannot fill the disk', async () => {
      const { uid, name } = await newOrganization();
      const [a, b, c] = [await begin(`${name}/app`), await begin(`${name}/app`), await begin(`${name}/app`)].map(
        locationOf,
      );
      assert.equal((await patch(a ?? '', randomBytes(60 * KIB))).status, 202);
      // A body of known length is refused before it is read, one of unknown length as soon as it is too long.
      assertRefused(await patch(b ?? '', randomBytes(60 * KIB)), uid);
      assert.equal((await fixture.owner.send('GET', b ?? '')).headers.range, '0-0');
      async function* chunks() {
        for (let i = 0; i < 200; i++) yield randomBytes(KIB);
      }
      assertRefused(await patch(c ?? '', chunks()), uid);
      const end = Number((await fixture.owner.send('GET', c ?? '')).headers.range?.split('-')[1]);
      assert.ok(end < 40 * KIB, `${end} bytes were stored`);
      await fixture.owner.send('DELETE', c ?? '');
      await fixture.owner.send('DELETE', a ?? '');
      assert.equal((await patch(b ?? '', randomBytes(60 * KIB))).status, 202);
    });

    test('stored bytes are limited; a blob counts once, and not after it is deleted', async () => {
      const { uid, name } = await newOrganization();
      const layer = randomBytes(40 * KIB);
      await fixture.owner.pushBlob(`${name}/one`, layer);
      // The same blob in another repo, pushed or mounted, takes no space.
      await fixture.owner.pushBlob(`${name}/two`, layer);
      const mount = `/v2/${name}/three/blobs/uploads/?mount=${digestOf(layer)}&from=${name}/one`;
      assert.equal((await fixture.owner.send('POST', mount)).status, 201);
      await fixture.owner.pushBlob(`${name}/one`, randomBytes(40 * KIB));
      assertRefused(await whole(`${name}/one`, randomBytes(40 * KIB)), uid);
      // A mount from another organization counts.
      const source = await newOrganization();
      const foreign = randomBytes(30 * KIB);
      await fixture.owner.pushBlob(`${source.name}/app`, foreign);
      const across = `/v2/${name}/one/blobs/uploads/?mount=${digestOf(foreign)}&from=${source.name}/app`;
      assertRefused(await fixture.owner.send('POST', across), uid);
      // It still counts while one repo has it, and is free when the last one is deleted.
      const repos = new Map<string, string>();
      for (const repo of (await fixture.api.call(ReposService.method.listRepos, { uidp: { childrenOf: uid } })).repos) {
        repos.set(repo.name, repo.uid);
      }
      await fixture.api.call(ReposService.method.deleteRepo, { uid: repos.get('two') ?? '' });
      await fixture.owner.send('DELETE', `/v2/${name}/one/blobs/${digestOf(layer)}`);
      assertRefused(await whole(`${name}/one`, randomBytes(40 * KIB)), uid);
      await fixture.api.call(ReposService.method.deleteRepo, { uid: repos.get('three') ?? '' });
      assert.equal((await whole(`${name}/one`, randomBytes(40 * KIB))).status, 201);
    });

    test('manifests count, and what garbage collection deletes does not', async () => {
      const { uid, name } = await newOrganization();
      const config = Buffer.from('{}');
      await fixture.owner.pushBlob(`${name}/app`, config);
      const manifest = (fill: string) =>
        buildManifest({
          mediaType: IMAGE,
          ...{ schemaVersion: 2, layers: [], annotations: { fill: fill.repeat(60 * KIB) } },
          ...{ config: { mediaType: CONFIG, digest: digestOf(config), size: config.length } },
        } as never);
      const [a, b] = [manifest('a'), manifest('b')];
      await fixture.owner.pushManifest(`${name}/app`, 'a', a);
      await fixture.owner.pushManifest(`${name}/app`, 'again', a);
      const push = () =>
        fixture.owner.send('PUT', `/v2/${name}/app/manifests/b`, { headers: { 'content-type': IMAGE }, body: b.bytes });
      assertRefused(await push(), uid);
      assert.equal((await fixture.owner.send('DELETE', `/v2/${name}/app/manifests/${a.digest}`)).status, 202);
      assert.equal((await push()).status, 201);
      assertRefused(await whole(`${name}/app`, randomBytes(50 * KIB)), uid);
      assert.equal((await fixture.owner.send('DELETE', `/v2/${name}/app/manifests/${b.digest}`)).status, 202);
      const layer = randomBytes(90 * KIB);
      assert.equal((await whole(`${name}/app`, layer)).status, 201);
      assertRefused(await whole(`${name}/app`, randomBytes(50 * KIB)), uid);
      await collect();
      assert.equal((await whole(`${name}/app`, randomBytes(50 * KIB))).status, 201);
    });

    test('pushes at the same time on two servers do not exceed the limit together', async () => {
      const { uid, name } = await newOrganization();
      const sizes = Array.from({ length: 12 }, (_, i) => (i % 3 === 0 ? 20 : 15) * KIB);
      const shared = randomBytes(20 * KIB);
      await Promise.all(
        sizes.map(async (size, i) => {
          const content = i % 3 === 0 ? shared : randomBytes(size);
          const client = i % 2 ? second : fixture.owner;
          // The number of open uploads is limited too, so a client tries again, as it would after Retry-After.
          for (let tries = 0; tries < 50; tries++) {
            const response = await whole(`${name}/repo-${i % 4}`, content, client);
            if (response.status === 201) return;
            assert.equal(response.status, 429, response.body.toString());
            if (!/unfinished/.test(response.body.toString())) return;
          }
        }),
      );
      const row = await fixture.db.get<{ bytes: number }>(
        'SELECT bytes FROM organization_storage WHERE organization = $1',
        uid,
      );
      assert.ok(Number(row?.bytes) <= 100 * KIB, `${row?.bytes} bytes`);
      assert.ok(Number(row?.bytes) >= 65 * KIB, `${row?.bytes} bytes`);
    });
  },
  { env },
);
