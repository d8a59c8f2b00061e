import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Capability } from '../../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { builtinRoleUid, callerWithRole, type TestCaller } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { buildImage, digestOf, pushImage } from '../../support/oci-client.ts';
import { onEveryDatabase } from '../../support/oci-fixture.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { beginSlowRequest } from '../../support/slow-request.ts';
import { type Client, wires } from '../../support/wires.ts';

// The attacker sends the headers of a write, loses its access, and sends the rest.

const { createGroup, listGroups } = GroupsService.method;
const { createRole } = RolesService.method;
const { deleteIdentity } = IdentitiesService.method;
const { deleteRoleBinding, listRoleBindings, updateRoleBinding } = RoleBindingsService.method;

onEveryDatabase('a write whose caller loses access while it sends', (fixture) => {
  const beginCreate = (path: string, token: string, body: object) =>
    beginSlowRequest(`${fixture.server.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const bindingOf = async ({ uid }: TestCaller) => {
    const { roleBindings } = await fixture.api.call(listRoleBindings, { identity: uid });
    return roleBindings[0]?.uid ?? assert.fail();
  };
  const childrenOf = async (parent: string) =>
    (await fixture.api.call(listGroups, { uidp: { childrenOf: parent } })).groups.map(({ name }) => name);

  /** A request that is authenticated while its identity is deleted may get either status. */
  const assertRefused = (status: number) => assert.ok(status === 401 || status === 403, `${status}`);
  const revocations: [string, (caller: TestCaller) => Promise<unknown>][] = [
    ['its identity is deleted', ({ uid }) => fixture.api.call(deleteIdentity, { uid })],
    [
      'its role binding is deleted',
      async (caller) => fixture.api.call(deleteRoleBinding, { uid: await bindingOf(caller) }),
    ],
  ];
  for (const [what, revoke] of revocations) {
    for (const [version, path] of [
      ['v2', (group: string) => `/iam/v2/groups/${group}`],
      ['v1', (group: string) => `/iam/v1/groups/${group}`],
    ] as const) {
      test(`is refused over REST ${version} when ${what}`, async () => {
        const { uid: group } = await fixture.newTeam();
        const caller = await callerWithRole(fixture.server, 'owner', group);
        const slow = await beginCreate(path(group), await caller.token(), { name: 'too-late' });
        await revoke(caller);
        slow.finish();
        assertRefused(await slow.status);
        assert.deepEqual(await childrenOf(group), []);
      });
    }

    test(`cannot push a manifest or a blob when ${what}`, async () => {
      const team = await fixture.newTeam();
      const name = `${team.name}/app`;
      const before = await pushImage(fixture.owner, name, 'latest');
      const caller = await callerWithRole(fixture.server, 'owner', team.uid);
      const token = await caller.token();
      const headers = { authorization: `Bearer ${token}` };
      const image = buildImage('amd64', Buffer.from('another layer'));
      for (const blob of image.blobs) await fixture.owner.pushBlob(name, blob);
      const blob = Buffer.from('a late blob');
      const slow = [
        await beginSlowRequest(`${fixture.server.url}/v2/${name}/manifests/latest`, {
          method: 'PUT',
          headers: { ...headers, 'content-type': image.manifest.mediaType },
          body: image.manifest.bytes,
        }),
        await beginSlowRequest(`${fixture.server.url}/v2/${name}/blobs/uploads/?digest=${digestOf(blob)}`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/octet-stream' },
          body: blob,
        }),
      ];
      await revoke(caller);
      for (const each of slow) each.finish();
      for (const { status } of slow) assertRefused(await status);
      const { headers: tagged } = await fixture.owner.send('HEAD', `/v2/${name}/manifests/latest`);
      assert.equal(tagged['docker-content-digest'], before.digest);
      assert.equal((await fixture.owner.send('HEAD', `/v2/${name}/blobs/${digestOf(blob)}`)).status, 404);
    });
  }

  test('is accepted when it still may write', async () => {
    const { uid: group } = await fixture.newTeam();
    const caller = await callerWithRole(fixture.server, 'owner', group);
    const bystander = await callerWithRole(fixture.server, 'viewer', group);
    const slow = await beginCreate(`/iam/v2/groups/${group}`, await caller.token(), { name: 'in-time' });
    await fixture.api.call(deleteRoleBinding, { uid: await bindingOf(bystander) });
    slow.finish();
    assert.equal(await slow.status, 200);
    assert.deepEqual(await childrenOf(group), ['in-time']);
  });

  test('cannot grant a role that it lost', async () => {
    const { uid: group } = await fixture.newTeam();
    const caller = await callerWithRole(fixture.server, 'owner', group);
    const accomplice = await callerWithRole(fixture.server, 'viewer', group);
    const slow = await beginSlowRequest(`${fixture.server.url}/iam/v2/roleBindings/${await bindingOf(accomplice)}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${await caller.token()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ roleUid: builtinRoleUid('owner') }),
    });
    // It keeps the capability that the method needs, but not those of the role that it grants.
    const capabilities = [Capability.CAP_IAM_ROLE_BINDINGS_UPDATE];
    const role = await fixture.api.call(createRole, { parent: group, role: { name: 'binder', capabilities } });
    await fixture.api.call(updateRoleBinding, {
      roleBinding: { uid: await bindingOf(caller), roleUid: role.uid },
    });
    slow.finish();
    assert.equal(await slow.status, 403);
  });
});

for (const database of databases) {
  describe(`a write that was answered with a timeout, on ${database.name}`, () => {
    let server: TestServer;
    let owner: Client;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_REQUEST_TIMEOUT: '300ms' } });
      owner = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    });
    after(async () => {
      owner.close();
      await server.remove();
    });

    test('never commits', async () => {
      const slow = await beginSlowRequest(`${server.url}/iam/v2/groups/${server.organization}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'too-late' }),
      });
      assert.equal(await slow.status, 504);
      slow.finish();
      await slow.handled();
      await owner.call(createGroup, { parent: server.organization, group: { name: 'later' } });
      const { groups } = await owner.call(listGroups, { uidp: { childrenOf: server.organization } });
      assert.deepEqual(
        groups.map(({ name }) => name),
        ['later'],
      );
    });
  });
}
