import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { callerWith, stranger } from '../support/callers.ts';
import { type OciBench, onEveryDatabase } from '../support/oci-bench.ts';
import { basic, codesIn, digestOf, imageOf, type OciClient, pushImage } from '../support/oci-client.ts';

const LAYER = Buffer.from('a layer');
const other = imageOf('arm64');

/** All that can be done with a repo, and the status that it gives who may. */
const deeds = {
  'pull by tag': [200, 'GET', 'manifests/v1'],
  'pull by digest': [200, 'HEAD', 'manifests/<manifest>'],
  'pull a blob': [200, 'GET', `blobs/${digestOf(LAYER)}`],
  'ask for a blob': [200, 'HEAD', `blobs/${digestOf(LAYER)}`],
  'list tags': [200, 'GET', 'tags/list'],
  'list referrers': [200, 'GET', `referrers/${digestOf(LAYER)}`],
  'begin an upload': [202, 'POST', 'blobs/uploads/'],
  'push a blob': [201, 'POST', `blobs/uploads/?digest=${digestOf(Buffer.from(''))}`],
  'push a manifest': [201, 'PUT', 'manifests/v2', other.manifest],
  'move a tag': [201, 'PUT', 'manifests/v1', other.manifest],
  'delete a tag': [202, 'DELETE', 'manifests/v1'],
  'delete a manifest': [202, 'DELETE', 'manifests/<manifest>'],
  'delete a blob': [202, 'DELETE', 'blobs/<free>'],
} as const;
type Deed = keyof typeof deeds;

const reading: readonly Deed[] = ['pull by tag', 'pull by digest', 'list tags', 'list referrers'];
const pulling: readonly Deed[] = [...reading, 'pull a blob', 'ask for a blob'];
const everything = Object.keys(deeds) as readonly Deed[];

/** What the built-in roles are worth here. */
const worth: Readonly<Record<string, readonly Deed[]>> = {
  owner: everything,
  'registry.push': everything,
  editor: pulling,
  viewer: pulling,
  'registry.pull': pulling,
  console_viewer: reading,
  'apk.pull': [],
};

let repos = 0;

/** A repo with one image, and a blob that nothing needs. */
async function newRepo(bench: OciBench, team: { readonly name: string }) {
  const name = `${team.name}/repo-${++repos}`;
  const { manifest, blobs } = imageOf('amd64', LAYER);
  const free = Buffer.from(`free ${name}`);
  for (const blob of [...blobs, ...other.blobs, free]) await bench.owner.pushBlob(name, blob);
  await bench.owner.pushManifest(name, 'v1', manifest);
  const perform = async (client: OciClient, deed: Deed) => {
    const [, verb, path, body] = deeds[deed];
    const place = path.replace('<manifest>', manifest.digest).replace('<free>', digestOf(free));
    return client.send(verb, `/v2/${name}/${place}`, {
      ...(body && { headers: { 'content-type': body.mediaType }, body: body.bytes }),
    });
  };
  return { name, perform };
}

onEveryDatabase('who may do what with a repo', (bench) => {
  for (const [role, allowed] of Object.entries(worth)) {
    test(`${role}: ${allowed.length} of ${everything.length}`, async () => {
      const team = await bench.newTeam();
      const client = await bench.withRole(role, team.uid);
      for (const deed of everything) {
        const { perform } = await newRepo(bench, team);
        const answer = await perform(client, deed);
        const expected = allowed.includes(deed) ? deeds[deed][0] : 403;
        assert.equal(answer.status, expected, `${role} wants to ${deed}: ${answer.body}`);
        if (expected === 403 && deeds[deed][1] !== 'HEAD') assert.deepEqual(codesIn(answer), ['DENIED']);
      }
    });
  }

  test('without a token 401 and where to get one; with one that is worth nothing, 403', async () => {
    const team = await bench.newTeam();
    const { perform, name } = await newRepo(bench, team);
    const somebody = await stranger(bench.server, (await bench.newTeam()).uid);
    const token = await somebody.token();
    for (const deed of everything) {
      const nobody = await perform(bench.as(), deed);
      assert.equal(nobody.status, 401, deed);
      const challenge = nobody.headers['www-authenticate'] ?? '';
      const { url } = bench.server;
      assert.ok(
        challenge.startsWith(`Bearer realm="${url}/v2/token",service="${new URL(url).host}",scope="`),
        challenge,
      );
      assert.ok(challenge.includes(`repository:${name}:pull`), challenge);
      for (const authorization of [`Bearer ${token}`, basic(token), token]) {
        assert.equal((await perform(bench.as(authorization), deed)).status, 403, deed);
      }
      assert.equal((await perform(bench.as(basic('no token')), deed)).status, 401, deed);
    }
  });

  test('a repo out of reach looks like one that does not exist', async () => {
    const [mine, theirs] = [await bench.newTeam(), await bench.newTeam()];
    const { name } = await newRepo(bench, theirs);
    const client = await bench.withRole('registry.push', mine.uid);
    for (const deed of everything) {
      const [, verb, path, body] = deeds[deed];
      const look = async (repo: string) => {
        const {
          status,
          headers,
          body: text,
        } = await client.send(verb, `/v2/${repo}/${path.replaceAll(/<\w+>/g, 'x')}`, {
          ...(body && { headers: { 'content-type': body.mediaType }, body: body.bytes }),
        });
        const { date: _, 'x-request-id': __, 'content-length': ___, ...rest } = headers;
        return { status, rest, text: text.toString().replaceAll(repo, '…') };
      };
      const there = await look(name);
      for (const missing of [`${theirs.name}/missing`, `${theirs.name}/no/group`, 'no-org/none']) {
        assert.deepEqual(await look(missing), there, deed);
      }
    }
  });

  test('a blob is there only for a repo that links it', async () => {
    const team = await bench.newTeam();
    const [here, there] = [await newRepo(bench, team), await newRepo(bench, team)];
    const secret = Buffer.from('only here');
    const digest = await bench.owner.pushBlob(here.name, secret);
    assert.equal((await bench.owner.send('GET', `/v2/${here.name}/blobs/${digest}`)).status, 200);
    for (const verb of ['GET', 'HEAD']) {
      assert.equal((await bench.owner.send(verb, `/v2/${there.name}/blobs/${digest}`)).status, 404);
    }
  });

  test('a mount needs a place where the caller may read the blob, and is else an upload', async () => {
    const [mine, theirs] = [await bench.newTeam(), await bench.newTeam()];
    const { name: source } = await newRepo(bench, theirs);
    const secret = Buffer.from(`secret of ${source}`);
    const digest = await bench.owner.pushBlob(source, secret);
    const client = await bench.withRole('registry.push', mine.uid);
    const target = `${mine.name}/mounted`;
    const mount = async (who: OciClient, query: string) => who.send('POST', `/v2/${target}/blobs/uploads/?${query}`);

    for (const query of [`mount=${digest}&from=${source}`, `mount=${digest}`, `mount=${digest}&from=no-org/none`]) {
      const refused = await mount(client, query);
      assert.equal(refused.status, 202, query);
      assert.match(refused.headers.location ?? '', /uploads\//);
    }
    assert.equal((await client.send('HEAD', `/v2/${target}/blobs/${digest}`)).status, 404);

    const mounted = await mount(bench.owner, `mount=${digest}&from=${source}`);
    assert.deepEqual([mounted.status, mounted.headers.location], [201, `/v2/${target}/blobs/${digest}`]);
    assert.deepEqual((await client.send('GET', `/v2/${target}/blobs/${digest}`)).body, secret);
    // By now the caller may read it somewhere.
    assert.equal((await mount(client, `mount=${digest}`)).status, 201);
    assert.equal((await mount(client, `mount=${digest}&from=../../etc`)).status, 400);
    assert.equal((await mount(client, 'mount=sha256:short')).status, 400);
  });

  test('a role without tag.update gives tags that never move', async () => {
    const { api, server } = bench;
    const team = await bench.newTeam();
    const { name } = await newRepo(bench, team);
    const capabilities = [
      Capability.CAP_REPO_LIST,
      Capability.CAP_MANIFEST_LIST,
      Capability.CAP_MANIFEST_CREATE,
      Capability.CAP_MANIFEST_UPDATE,
      Capability.CAP_TAG_CREATE,
    ];
    const role = await api.call(RolesService.method.createRole, {
      parent: server.organization,
      role: { name: 'write once', capabilities },
    });
    const caller = await callerWith(server, role.uid, team.uid);
    const client = bench.as(basic(await caller.token()));
    const { manifest } = other;
    const put = (tag: string) =>
      client.send('PUT', `/v2/${name}/manifests/${tag}`, {
        headers: { 'content-type': manifest.mediaType },
        body: manifest.bytes,
      });
    assert.equal((await put('v2')).status, 201);
    assert.equal((await put('v2')).status, 201, 'where it points already');
    const moved = await put('v1');
    assert.deepEqual([moved.status, codesIn(moved)], [403, ['DENIED']]);
    assert.match(moved.body.toString(), /tag\.update/);
  });

  test('a role that was taken away is gone for the very next request', async () => {
    const { api, server } = bench;
    const team = await bench.newTeam();
    const caller = await callerWith(server, 'viewer', team.uid);
    const client = bench.as(basic(await caller.token()));
    const manifest = await pushImage(bench.owner, `${team.name}/revoked`, 'v1');
    const path = `/v2/${team.name}/revoked/manifests/v1`;
    assert.equal((await client.send('GET', path)).headers['docker-content-digest'], manifest.digest);
    const { roleBindings } = await api.call(RoleBindingsService.method.listRoleBindings, {
      uidp: { childrenOf: team.uid },
    });
    for (const { uid } of roleBindings) await api.call(RoleBindingsService.method.deleteRoleBinding, { uid });
    assert.equal((await client.send('GET', path)).status, 403);
  });
});
