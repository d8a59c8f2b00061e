import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { basicAuth, buildImage, digestOf, errorCodesIn, type OciClient, pushImage } from '../support/oci-client.ts';
import { type OciFixture, onEveryDatabase } from '../support/oci-fixture.ts';

const LAYER = Buffer.from('a layer');
const other = buildImage('arm64');

/** All operations on a repo, with the status for a caller that may do them. */
const operations = {
  'pull by tag': [200, 'GET', 'manifests/v1'],
  'pull by digest': [200, 'HEAD', 'manifests/<manifest>'],
  'pull a blob': [200, 'GET', `blobs/${digestOf(LAYER)}`],
  'check for a blob': [200, 'HEAD', `blobs/${digestOf(LAYER)}`],
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
type OperationName = keyof typeof operations;

const reading: readonly OperationName[] = ['pull by tag', 'pull by digest', 'list tags', 'list referrers'];
const pulling: readonly OperationName[] = [...reading, 'pull a blob', 'check for a blob'];
const allOperations = Object.keys(operations) as readonly OperationName[];

/** The operations that each built-in role allows. */
const allowedByRole: Readonly<Record<string, readonly OperationName[]>> = {
  owner: allOperations,
  'registry.push': allOperations,
  editor: pulling,
  viewer: pulling,
  'registry.pull': pulling,
  console_viewer: reading,
  'apk.pull': [],
};

let repos = 0;

/** Creates a repo with one image and an unreferenced blob. */
async function newRepo(fixture: OciFixture, team: { readonly name: string }) {
  const name = `${team.name}/repo-${++repos}`;
  const { manifest, blobs } = buildImage('amd64', LAYER);
  const free = Buffer.from(`free ${name}`);
  for (const blob of [...blobs, ...other.blobs, free]) await fixture.owner.pushBlob(name, blob);
  await fixture.owner.pushManifest(name, 'v1', manifest);
  const perform = async (client: OciClient, operation: OperationName) => {
    const [, verb, path, body] = operations[operation];
    const target = path.replace('<manifest>', manifest.digest).replace('<free>', digestOf(free));
    return client.send(verb, `/v2/${name}/${target}`, {
      ...(body && { headers: { 'content-type': body.mediaType }, body: body.bytes }),
    });
  };
  return { name, perform };
}

onEveryDatabase('access to a repo', (fixture) => {
  for (const [role, allowed] of Object.entries(allowedByRole)) {
    test(`${role} allows ${allowed.length} of ${allOperations.length} operations`, async () => {
      const team = await fixture.newTeam();
      const client = await fixture.withRole(role, team.uid);
      for (const operation of allOperations) {
        const { perform } = await newRepo(fixture, team);
        const response = await perform(client, operation);
        const expected = allowed.includes(operation) ? operations[operation][0] : 403;
        assert.equal(response.status, expected, `${role}: ${operation}: ${response.body}`);
        if (expected === 403 && operations[operation][1] !== 'HEAD')
          assert.deepEqual(errorCodesIn(response), ['DENIED']);
      }
    });
  }

  test('without a token the status is 401 with a challenge, and with a token without capabilities 403', async () => {
    const team = await fixture.newTeam();
    const { perform, name } = await newRepo(fixture, team);
    const caller = await callerWithoutRole(fixture.server, (await fixture.newTeam()).uid);
    const token = await caller.token();
    for (const operation of allOperations) {
      const anonymous = await perform(fixture.as(), operation);
      assert.equal(anonymous.status, 401, operation);
      const challenge = anonymous.headers['www-authenticate'] ?? '';
      const { url } = fixture.server;
      assert.ok(
        challenge.startsWith(`Bearer realm="${url}/v2/token",service="${new URL(url).host}",scope="`),
        challenge,
      );
      assert.ok(challenge.includes(`repository:${name}:pull`), challenge);
      for (const authorization of [`Bearer ${token}`, basicAuth(token), token]) {
        assert.equal((await perform(fixture.as(authorization), operation)).status, 403, operation);
      }
      assert.equal((await perform(fixture.as(basicAuth('no token')), operation)).status, 401, operation);
    }
  });

  test('a repo out of reach gets the same responses as a missing one', async () => {
    const [mine, theirs] = [await fixture.newTeam(), await fixture.newTeam()];
    const { name } = await newRepo(fixture, theirs);
    const client = await fixture.withRole('registry.push', mine.uid);
    for (const operation of allOperations) {
      const [, verb, path, body] = operations[operation];
      const responseFor = async (repo: string) => {
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
      const existing = await responseFor(name);
      for (const missing of [`${theirs.name}/missing`, `${theirs.name}/no/group`, 'no-org/none']) {
        assert.deepEqual(await responseFor(missing), existing, operation);
      }
    }
  });

  test('a blob is found only in a repo that links it', async () => {
    const team = await fixture.newTeam();
    const [here, existing] = [await newRepo(fixture, team), await newRepo(fixture, team)];
    const secret = Buffer.from('only here');
    const digest = await fixture.owner.pushBlob(here.name, secret);
    assert.equal((await fixture.owner.send('GET', `/v2/${here.name}/blobs/${digest}`)).status, 200);
    for (const verb of ['GET', 'HEAD']) {
      assert.equal((await fixture.owner.send(verb, `/v2/${existing.name}/blobs/${digest}`)).status, 404);
    }
  });

  test('a mount needs a repo where the caller can read the blob, and starts an upload otherwise', async () => {
    const [mine, theirs] = [await fixture.newTeam(), await fixture.newTeam()];
    const { name: source } = await newRepo(fixture, theirs);
    const secret = Buffer.from(`secret of ${source}`);
    const digest = await fixture.owner.pushBlob(source, secret);
    const client = await fixture.withRole('registry.push', mine.uid);
    const target = `${mine.name}/mounted`;
    const mount = async (mounter: OciClient, query: string) =>
      mounter.send('POST', `/v2/${target}/blobs/uploads/?${query}`);

    for (const query of [`mount=${digest}&from=${source}`, `mount=${digest}`, `mount=${digest}&from=no-org/none`]) {
      const refused = await mount(client, query);
      assert.equal(refused.status, 202, query);
      assert.match(refused.headers.location ?? '', /uploads\//);
    }
    assert.equal((await client.send('HEAD', `/v2/${target}/blobs/${digest}`)).status, 404);

    const mounted = await mount(fixture.owner, `mount=${digest}&from=${source}`);
    assert.deepEqual([mounted.status, mounted.headers.location], [201, `/v2/${target}/blobs/${digest}`]);
    assert.deepEqual((await client.send('GET', `/v2/${target}/blobs/${digest}`)).body, secret);
    // Now the caller can read it in a repo.
    assert.equal((await mount(client, `mount=${digest}`)).status, 201);
    assert.equal((await mount(client, `mount=${digest}&from=../../etc`)).status, 400);
    assert.equal((await mount(client, 'mount=sha256:short')).status, 400);
  });

  test('a role without tag.update cannot move tags', async () => {
    const { api, server } = fixture;
    const team = await fixture.newTeam();
    const { name } = await newRepo(fixture, team);
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
    const caller = await callerWithRole(server, role.uid, team.uid);
    const client = fixture.as(basicAuth(await caller.token()));
    const { manifest } = other;
    const put = (tag: string) =>
      client.send('PUT', `/v2/${name}/manifests/${tag}`, {
        headers: { 'content-type': manifest.mediaType },
        body: manifest.bytes,
      });
    assert.equal((await put('v2')).status, 201);
    assert.equal((await put('v2')).status, 201, 'the tag points there already');
    const moved = await put('v1');
    assert.deepEqual([moved.status, errorCodesIn(moved)], [403, ['DENIED']]);
    assert.match(moved.body.toString(), /tag\.update/);
  });

  test('the deletion of a role binding takes effect with the next request', async () => {
    const { api, server } = fixture;
    const team = await fixture.newTeam();
    const caller = await callerWithRole(server, 'viewer', team.uid);
    const client = fixture.as(basicAuth(await caller.token()));
    const manifest = await pushImage(fixture.owner, `${team.name}/revoked`, 'v1');
    const path = `/v2/${team.name}/revoked/manifests/v1`;
    assert.equal((await client.send('GET', path)).headers['docker-content-digest'], manifest.digest);
    const { roleBindings } = await api.call(RoleBindingsService.method.listRoleBindings, {
      uidp: { childrenOf: team.uid },
    });
    for (const { uid } of roleBindings) await api.call(RoleBindingsService.method.deleteRoleBinding, { uid });
    assert.equal((await client.send('GET', path)).status, 403);
  });
});
