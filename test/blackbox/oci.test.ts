import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImagesService } from '../../src/contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { eventsAbout } from '../support/inspect.ts';
import {
  buildImage,
  buildIndex,
  buildManifest,
  digestOf,
  errorCodesIn,
  INDEX,
  pushImage,
} from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';
import { pollUntil } from '../support/poll-until.ts';

onEveryDatabase('the registry', (fixture) => {
  test('an index of two architectures is pulled unchanged, and the API describes it', async () => {
    const { owner, api } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    const shared = Buffer.alloc(100_000, 7);
    const images = {
      amd64: buildImage('amd64', shared, Buffer.alloc(3_000_000, 'amd')),
      arm64: buildImage('arm64', shared, Buffer.alloc(1_234_567, 'arm')),
    };
    for (const { blobs, manifest } of Object.values(images)) {
      for (const blob of blobs) await owner.pushBlob(name, blob);
      await owner.pushManifest(name, manifest.digest, manifest);
    }
    const index = buildIndex({ amd64: images.amd64.manifest, arm64: images.arm64.manifest });
    await owner.pushManifest(name, 'latest', index);

    const pulled = await owner.send('GET', `/v2/${name}/manifests/latest`);
    assert.deepEqual(pulled.body, index.bytes);
    assert.equal(pulled.headers['content-type'], INDEX);
    assert.equal(pulled.headers['docker-content-digest'], index.digest);
    for (const { digest } of JSON.parse(pulled.body.toString()).manifests) {
      const child = await owner.send('GET', `/v2/${name}/manifests/${digest}`);
      assert.equal(digestOf(child.body), digest);
      const { config, layers } = JSON.parse(child.body.toString());
      for (const { digest, size } of [config, ...layers]) {
        const { status, headers, body } = await owner.send('GET', `/v2/${name}/blobs/${digest}`);
        assert.deepEqual([status, body.length, digestOf(body)], [200, size, digest]);
        assert.equal(headers['content-length'], String(size));
      }
    }

    const { repos } = await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } });
    assert.deepEqual(
      repos.map((repo) => repo.name),
      ['app'],
    );
    const uid = repos[0]?.uid ?? '';
    const { tags } = await api.call(TagsService.method.listTags, { uidp: { childrenOf: uid } });
    assert.deepEqual(
      tags.map((tag) => [tag.name, tag.digest]),
      [['latest', index.digest]],
    );
    const { architectures } = await api.call(ImagesService.method.getArchitectures, {
      repoUid: uid,
      digest: index.digest,
    });
    assert.deepEqual(architectures, ['amd64', 'arm64']);
    for (const [architecture, { size }] of Object.entries(images)) {
      const response = await api.call(ImagesService.method.getSize, {
        repoUid: uid,
        digest: index.digest,
        architecture,
      });
      assert.deepEqual([response.architecture, response.size], [architecture, BigInt(size)]);
    }
  });

  test('every response has the headers of the protocol, and errors have a body except for HEAD', async () => {
    const { owner } = fixture;
    const team = await fixture.newTeam();
    for (const verb of ['GET', 'HEAD']) {
      const { status, headers, body } = await owner.send(verb, `/v2/${team.name}/nothing/manifests/latest`, {
        headers: { 'x-request-id': `the-${verb}` },
      });
      assert.equal(status, 404);
      assert.equal(headers['docker-distribution-api-version'], 'registry/2.0');
      assert.equal(headers['x-request-id'], `the-${verb}`);
      assert.equal(body.length > 0, verb === 'GET');
    }
    const unknownPath = await owner.send('GET', '/v2/a/b/c');
    assert.deepEqual([unknownPath.status, errorCodesIn(unknownPath)], [404, ['UNSUPPORTED']]);
    const wrongVerb = await owner.send('PATCH', `/v2/${team.name}/x/tags/list`);
    assert.deepEqual([wrongVerb.status, wrongVerb.headers.allow], [405, 'GET, HEAD']);
    assert.equal((await owner.send('GET', '/v2')).status, 200);
  });

  test('a push creates the repo with the same event as the API, if its group exists', async () => {
    const { api, db } = fixture;
    const team = await fixture.newTeam();
    const pusher = await fixture.withRole('registry.push', team.uid);
    await pushImage(pusher, `${team.name}/fresh`, 'v1');
    const { repos } = await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } });
    const [repo] = repos;
    assert.equal(repo?.name, 'fresh');
    const events = await eventsAbout(db, repo?.uid ?? '');
    assert.equal(events[0]?.type, 'dev.chainguard.api.platform.registry.repo.created.v1');
    assert.equal(events[0]?.scope, team.uid);

    const missing = await pusher.send('POST', `/v2/${team.name}/no-group/app/blobs/uploads/`);
    assert.deepEqual([missing.status, errorCodesIn(missing)], [404, ['NAME_UNKNOWN']]);
    const outside = await pusher.send('POST', `/v2/no-org/app/blobs/uploads/`);
    assert.deepEqual([outside.status, errorCodesIn(outside)], [403, ['DENIED']]);
    // An empty index needs no blobs, so its manifest is the first push to its repo.
    const index = buildManifest({ schemaVersion: 2, mediaType: INDEX, manifests: [] } as { mediaType: string });
    await pusher.pushManifest(`${team.name}/only-an-index`, 'v1', index);
  });

  test('concurrent first pushes create one repo', async () => {
    const { owner, api } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/crowded`;
    const responses = await Promise.all(
      Array.from({ length: 12 }, () => owner.send('POST', `/v2/${name}/blobs/uploads/`)),
    );
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([202]));
    const { repos } = await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } });
    assert.equal(repos.length, 1);
  });

  test('deletes emit events: one for each tag, as the API does, and one for the manifest or blob', async () => {
    const { owner, api, db } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/deleted`;
    const manifest = await pushImage(owner, name, 'v1', 'deleted');
    const { digest } = manifest;
    await owner.pushManifest(name, 'v2', manifest);
    await owner.pushManifest(name, 'v3', manifest);
    const { repos } = await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } });
    const repo = repos[0]?.uid ?? '';
    const { tags } = await api.call(TagsService.method.listTags, { uidp: { childrenOf: repo } });
    const eventOf = async (tag: string) => {
      const events = await eventsAbout(db, tags.find((one) => one.name === tag)?.uid ?? '');
      return events.filter(({ type }) => type === 'dev.chainguard.api.platform.registry.tag.deleted.v1');
    };

    assert.equal((await owner.send('DELETE', `/v2/${name}/manifests/v1`)).status, 202);
    const [deleted, ...more] = await eventOf('v1');
    assert.equal(more.length, 0);
    assert.equal(deleted?.bodyType, 'chainguard.platform.registry.DeleteTagRequest');
    assert.equal(deleted?.extensions.group, fixture.server.organization);
    assert.deepEqual(await eventOf('v2'), []);

    assert.equal((await owner.send('DELETE', `/v2/${name}/manifests/${digest}`)).status, 202);
    assert.equal((await eventOf('v2')).length, 1);
    assert.equal((await eventOf('v3')).length, 1);
    const blob = digestOf(Buffer.from('deleted'));
    assert.equal((await owner.send('DELETE', `/v2/${name}/blobs/${blob}`)).status, 202);
    const events = (await eventsAbout(db, repo)).filter(({ type }) => type.startsWith('dev.wharfinger.'));
    assert.deepEqual(
      events.map(({ type, scope, body }) => [type, scope, body?.digest, body?.repository]),
      [
        ['dev.wharfinger.registry.manifest.deleted.v1', team.uid, digest, name],
        ['dev.wharfinger.registry.blob.deleted.v1', team.uid, blob, name],
      ],
    );

    // A second delete finds nothing and emits nothing.
    assert.equal((await owner.send('DELETE', `/v2/${name}/manifests/v1`)).status, 404);
    assert.equal((await owner.send('DELETE', `/v2/${name}/manifests/${digest}`)).status, 404);
    assert.equal((await eventOf('v1')).length, 1);
  });

  test('pushes and pulls emit events with actor, content and time', async () => {
    const { owner, db, server } = fixture;
    const team = await fixture.newTeam();
    const name = `${team.name}/watched`;
    const first = await pushImage(owner, name, 'v1', 'one');
    const second = await pushImage(owner, name, 'v1', 'two');
    await owner.send('GET', `/v2/${name}/manifests/v1`, { headers: { 'user-agent': 'tester/1.0' } });
    await owner.send('HEAD', `/v2/${name}/manifests/${first.digest}`);
    await owner.send('GET', `/v2/${name}/blobs/${digestOf(Buffer.from('two'))}`);
    const { uid } = (await db.get<{ uid: string }>(
      "SELECT uid FROM resource WHERE kind = 'repo' AND parent = $1",
      team.uid,
    )) ?? { uid: '' };
    // Two images of two blobs each, and three pulls, whose events are written after their responses.
    const events = await pollUntil(
      async () => (await eventsAbout(db, uid)).filter(({ type }) => type.startsWith('dev.chainguard.registry.')),
      ({ length }) => length === 9,
    );
    const bodies = events.map(({ type, body }) => [type.split('.')[3], body?.type, body?.tag, body?.digest]);
    assert.deepEqual(bodies.filter(([, type]) => type === 'manifest').slice(0, 4), [
      ['push', 'manifest', 'v1', first.digest],
      ['push', 'manifest', 'v1', second.digest],
      ['pull', 'manifest', 'v1', second.digest],
      ['pull', 'manifest', undefined, first.digest],
    ]);
    assert.ok(bodies.some(([kind, type]) => kind === 'pull' && type === 'blob'));
    assert.ok(bodies.some(([kind, type]) => kind === 'push' && type === 'blob'));
    const moved = events.find(({ body }) => body?.tag_previous_digest !== undefined);
    assert.equal(moved?.body?.tag_previous_digest, first.digest);
    const pulled = events.find(({ type, body }) => type.includes('.pull.') && body?.tag === 'v1');
    assert.deepEqual([pulled?.scope, pulled?.bodyType], [team.uid, null]);
    const { when, ...rest } = pulled?.body ?? {};
    assert.match(String(when), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
    assert.deepEqual(rest, {
      repository: name,
      repo_id: uid,
      tag: 'v1',
      digest: second.digest,
      method: 'GET',
      type: 'manifest',
      location: '',
      remote_address: '127.0.0.1',
      user_agent: 'tester/1.0',
    });
    const actor = await db.get<{ actor: string }>(
      "SELECT actor FROM outbox WHERE subject = $1 AND type LIKE '%pull%'",
      uid,
    );
    assert.match(actor?.actor ?? '', /"subject":"[0-9a-f]{40}/);
    assert.ok(!(actor?.actor ?? '').includes(server.token));
  });
});
