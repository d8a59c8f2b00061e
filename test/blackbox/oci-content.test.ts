import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildImage,
  buildManifest,
  descriptorFor,
  digestOf,
  errorCodesIn,
  IMAGE,
  INDEX,
  LAYER,
  type Manifest,
  pushImage,
} from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';

const EMPTY = Buffer.from('{}');
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';

onEveryDatabase('registry content', (fixture) => {
  test('tags are listed in pages with links to the next', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/tagged`;
    const tags = ['Upper', '_under', 'a', 'b', 'c-r1', 'latest', 'v10', 'v9'];
    const { manifest, blobs } = buildImage('amd64', Buffer.from('tagged'));
    for (const blob of blobs) await owner.pushBlob(name, blob);
    for (const tag of tags) await owner.pushManifest(name, tag, manifest);

    const seen: string[] = [];
    let next = `/v2/${name}/tags/list?n=3`;
    for (let page = 0; page < 5 && next !== ''; page++) {
      const { body, headers } = await owner.send('GET', next);
      const found = JSON.parse(body.toString());
      assert.equal(found.name, name);
      seen.push(...found.tags);
      next = /^<([^>]+)>; rel="next"$/.exec(headers.link?.toString() ?? '')?.[1] ?? '';
    }
    assert.deepEqual(seen, [...tags].sort());
    const list = async (query: string) =>
      JSON.parse((await owner.send('GET', `/v2/${name}/tags/list?${query}`)).body.toString()).tags;
    assert.deepEqual(await list('last=latest'), ['v10', 'v9']);
    assert.deepEqual(await list('n=0'), []);
    assert.deepEqual(await list('n=2&last=zzz'), []);
    for (const n of ['-1', 'x', '1.5', '9999999999']) {
      assert.equal((await owner.send('GET', `/v2/${name}/tags/list?n=${n}`)).status, 400, n);
    }
  });

  test('referrers are listed by subject and filtered by type, also those pushed before the subject', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/signed`;
    const { manifest: subject, blobs } = buildImage('amd64', Buffer.from('signed'));
    for (const blob of [...blobs, EMPTY]) await owner.pushBlob(name, blob);
    const newReferrer = (artifactType: string) =>
      buildManifest({
        schemaVersion: 2,
        mediaType: IMAGE,
        artifactType,
        config: descriptorFor(EMPTY_TYPE, EMPTY),
        layers: [descriptorFor(EMPTY_TYPE, EMPTY)],
        subject: descriptorFor(subject.mediaType, subject.bytes),
        annotations: { note: artifactType },
      } as { mediaType: string });
    const [signature, sbom] = [newReferrer('application/x.signature'), newReferrer('application/x.bill')];
    const put = (manifest: Manifest) =>
      owner.send('PUT', `/v2/${name}/manifests/${manifest.digest}`, {
        headers: { 'content-type': manifest.mediaType },
        body: manifest.bytes,
      });
    assert.equal((await put(signature)).headers['oci-subject'], subject.digest);
    assert.equal((await put(subject)).headers['oci-subject'], undefined);
    await put(sbom);

    const list = async (query = '') => {
      const { headers, body } = await owner.send('GET', `/v2/${name}/referrers/${subject.digest}${query}`);
      assert.equal(headers['content-type'], INDEX);
      const { schemaVersion, mediaType, manifests } = JSON.parse(body.toString());
      assert.deepEqual([schemaVersion, mediaType], [2, INDEX]);
      return { manifests, filters: headers['oci-filters-applied'] };
    };
    const all = await list();
    assert.deepEqual(
      all.manifests.map(({ digest }: { digest: string }) => digest).sort(),
      [signature.digest, sbom.digest].sort(),
    );
    const filtered = await list('?artifactType=application/x.bill');
    assert.equal(filtered.filters, 'artifactType');
    assert.deepEqual(filtered.manifests, [
      {
        ...descriptorFor(IMAGE, sbom.bytes),
        artifactType: 'application/x.bill',
        annotations: { note: 'application/x.bill' },
      },
    ]);
    const unknown = await owner.send('GET', `/v2/${name}/referrers/${digestOf(Buffer.from('?'))}`);
    assert.deepEqual([unknown.status, JSON.parse(unknown.body.toString()).manifests], [200, []]);
    assert.equal((await owner.send('GET', `/v2/${team.name}/none/referrers/${subject.digest}`)).status, 200);
  });

  test('many referrers with large annotations are listed in pages', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/discussed`;
    const subject = await pushImage(owner, name, 'v1');
    await owner.pushBlob(name, EMPTY);
    const digests: string[] = [];
    for (let i = 0; i < 25; i++) {
      const { digest } = await newReferrer(i, 250_000);
      digests.push(digest);
    }
    async function newReferrer(i: number, length: number): Promise<Manifest> {
      const manifest = buildManifest({
        schemaVersion: 2,
        mediaType: IMAGE,
        config: descriptorFor(EMPTY_TYPE, EMPTY),
        layers: [],
        subject: descriptorFor(subject.mediaType, subject.bytes),
        annotations: { note: `${i}`.padEnd(length, '.') },
      } as { mediaType: string });
      await owner.pushManifest(name, manifest.digest, manifest);
      return manifest;
    }
    const seen: string[] = [];
    let pages = 0;
    for (let next = `/v2/${name}/referrers/${subject.digest}`; next !== ''; pages++) {
      const { status, headers, body } = await owner.send('GET', next);
      assert.equal(status, 200);
      assert.ok(body.length < 5_000_000);
      seen.push(...JSON.parse(body.toString()).manifests.map(({ digest }: { digest: string }) => digest));
      next = /^<([^>]+)>; rel="next"$/.exec(headers.link?.toString() ?? '')?.[1] ?? '';
    }
    assert.deepEqual(seen, digests.sort());
    assert.equal(pages, 3);
  });

  test('tags, manifests and blobs can be deleted, except a blob of a manifest', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/short-lived`;
    const manifest = await pushImage(owner, name, 'v1', 'content');
    await owner.pushManifest(name, 'v2', manifest);
    const layer = digestOf(Buffer.from('content'));
    const status = async (verb: string, path: string) => (await owner.send(verb, `/v2/${name}/${path}`)).status;

    const referenced = await owner.send('DELETE', `/v2/${name}/blobs/${layer}`);
    assert.deepEqual([referenced.status, errorCodesIn(referenced)], [405, ['UNSUPPORTED']]);
    assert.equal(await status('DELETE', 'manifests/v1'), 202);
    assert.equal(await status('GET', 'manifests/v1'), 404);
    assert.equal(await status('DELETE', 'manifests/v1'), 404);
    assert.equal(await status('GET', 'manifests/v2'), 200);
    assert.equal(await status('DELETE', `manifests/${manifest.digest}`), 202);
    assert.equal(await status('GET', 'manifests/v2'), 404);
    assert.equal(await status('DELETE', `blobs/${layer}`), 202);
    assert.equal(await status('HEAD', `blobs/${layer}`), 404);
    assert.equal(await status('DELETE', `blobs/${layer}`), 404);
  });

  test('If-None-Match and Range are supported', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/cached`;
    const manifest = await pushImage(owner, name, 'v1', '0123456789');
    const etag = { 'if-none-match': `"other", W/"${manifest.digest}"` };
    for (const reference of ['v1', manifest.digest]) {
      const { status, body } = await owner.send('GET', `/v2/${name}/manifests/${reference}`, { headers: etag });
      assert.deepEqual([status, body.length], [304, 0]);
    }
    const path = `/v2/${name}/blobs/${digestOf(Buffer.from('0123456789'))}`;
    const { headers } = await owner.send('GET', path);
    assert.match(headers['cache-control'] ?? '', /^private, .*immutable$/);
    assert.equal((await owner.send('GET', path, { headers: { 'if-none-match': headers.etag } })).status, 304);
    const part = async (range: string) => {
      const { status, headers, body } = await owner.send('GET', path, { headers: { range } });
      return [status, body.toString(), headers['content-range']];
    };
    assert.deepEqual(await part('bytes=2-4'), [206, '234', 'bytes 2-4/10']);
    assert.deepEqual(await part('bytes=8-'), [206, '89', 'bytes 8-9/10']);
    assert.deepEqual(await part('bytes=-3'), [206, '789', 'bytes 7-9/10']);
    assert.deepEqual(await part('bytes=5-500'), [206, '56789', 'bytes 5-9/10']);
    assert.deepEqual(await part('bytes=0-1,4-5'), [200, '0123456789', undefined]);
    assert.deepEqual(await part('lines=1-2'), [200, '0123456789', undefined]);
    assert.deepEqual((await part('bytes=10-')).toSpliced(1, 1), [416, 'bytes */10']);
    assert.deepEqual((await part('bytes=-0')).toSpliced(1, 1), [416, 'bytes */10']);
  });

  test('Docker images, artifacts and foreign layers are accepted', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/motley`;
    const [config, layer] = [Buffer.from('{"os":"linux","architecture":"s390x"}'), Buffer.from('layer')];
    for (const blob of [config, layer, EMPTY]) await owner.pushBlob(name, blob);
    const docker = 'application/vnd.docker.distribution.manifest.v2+json';
    const foreign = {
      ...descriptorFor('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', Buffer.from('far away')),
      urls: ['https://example.com/'],
    };
    const image = buildManifest({
      schemaVersion: 2,
      mediaType: docker,
      config: descriptorFor('application/vnd.docker.container.image.v1+json', config),
      layers: [descriptorFor('application/vnd.docker.image.rootfs.diff.tar.gzip', layer), foreign],
    } as { mediaType: string });
    const list = buildManifest({
      schemaVersion: 2,
      mediaType: 'application/vnd.docker.distribution.manifest.list.v2+json',
      manifests: [{ ...descriptorFor(docker, image.bytes), platform: { os: 'linux', architecture: 's390x' } }],
    } as { mediaType: string });
    const artifact = buildManifest({
      mediaType: 'application/vnd.oci.artifact.manifest.v1+json',
      artifactType: 'application/x.thing',
      blobs: [descriptorFor(LAYER, layer)],
    } as { mediaType: string });
    for (const [tag, manifest] of Object.entries({ image, list, artifact })) {
      await owner.pushManifest(name, tag, manifest);
      const { headers, body } = await owner.send('GET', `/v2/${name}/manifests/${tag}`);
      assert.deepEqual([headers['content-type'], body], [manifest.mediaType, manifest.bytes]);
    }
  });

  test('content with a SHA-512 digest keeps it, and is tagged by a query parameter', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/long`;
    const content = Buffer.from('five hundred and twelve');
    const digest = digestOf(content, 'sha512');
    const pushed = await owner.send('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: content });
    assert.deepEqual([pushed.status, pushed.headers['docker-content-digest']], [201, digest]);
    const manifest = buildManifest({
      schemaVersion: 2,
      mediaType: IMAGE,
      config: { mediaType: EMPTY_TYPE, digest, size: content.length },
      layers: [],
    } as { mediaType: string });
    const long = digestOf(manifest.bytes, 'sha512');
    const put = await owner.send('PUT', `/v2/${name}/manifests/${long}?tag=one&tag=two`, {
      headers: { 'content-type': IMAGE },
      body: manifest.bytes,
    });
    assert.equal(put.status, 201, put.body.toString());
    assert.equal(put.headers['oci-tag'], 'one, two');
    const { headers, body } = await owner.send('GET', `/v2/${name}/manifests/two`);
    assert.deepEqual([headers['docker-content-digest'], body], [long, manifest.bytes]);
  });
});
