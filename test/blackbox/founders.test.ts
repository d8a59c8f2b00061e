import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { parentOf, ROOT } from '../../src/base/uid.ts';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { GroupInvites } from '../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { AccessService } from '../../src/contract/gen/wharfinger/access/v1/access_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { ALLOW_TEST_ISSUERS, newTestProvider } from '../support/people.ts';
import { rejects } from '../support/rejects.ts';

const { createGroup, getGroup, listGroups, deleteGroup } = GroupsService.method;
const { listRoleBindings, createRoleBinding, updateRoleBinding } = RoleBindingsService.method;
const { exchange } = SecurityTokenService.method;

const CREATE_GROUP_BETA = 'chainguard.platform.iam.v2beta1.GroupsService/CreateGroup';

let count = 0;
const newName = (): string => `founded by a machine ${++count}`;

onEveryDatabaseAndWire(
  'an identity inside of a group that creates an organization',
  (fixture) => {
    /** An identity below an organization. By default, its role has groups.create, and much less than an owner. */
    async function newMachine(role = 'registry.push') {
      const group = await fixture.newGroup();
      const machine = await callerWithRole(fixture.server, role, group);
      const token = await machine.token();
      return { uid: machine.uid, group, token, client: fixture.as(token) };
    }
    const found = async ({ client }: { readonly client: typeof fixture.api }) =>
      (await client.call(createGroup, { group: { name: newName() } })).uid;

    test('owns what it has created, in v2, v2beta1 and v1', async () => {
      const { uid, client, token } = await newMachine();
      const group = { name: newName() };
      const beta = await client.call(createGroup, { group }, { token, id: CREATE_GROUP_BETA });
      const v1 = await client.call(Groups.method.create, { group: { name: newName() } });
      const organizations = [await found({ client }), beta.uid, v1.id];
      for (const org of organizations) {
        assert.equal((await client.call(getGroup, { uid: org })).uid, org);
        const { roleBindings } = await client.call(listRoleBindings, { group: org });
        assert.deepEqual(
          roleBindings.map(({ identityUid, role, identity }) => [identityUid, role?.name, identity?.uid]),
          [[uid, 'owner', uid]],
        );
        const child = await client.call(createGroup, { parent: org, group: { name: 'inside' } });
        await client.call(ReposService.method.createRepo, { parent: child.uid, repo: { name: 'repo' } });
      }
      const { groups } = await client.call(listGroups, {});
      assert.deepEqual(
        groups.map((listed) => listed.uid).filter((listed) => parentOf(listed) === ROOT),
        organizations.toSorted(),
      );
      const { capabilities } = await client.call(Auth.method.validate, {});
      assert.deepEqual(
        capabilities.filter(({ role }) => role?.name === 'owner').map((entry) => entry.group?.id),
        organizations.toSorted(),
      );
    });

    test('keeps what it has created when its role at its group ends, and can delete it', async () => {
      const { uid, group, client } = await newMachine();
      const org = await found({ client });
      const { roleBindings } = await fixture.api.call(listRoleBindings, { group });
      const own = roleBindings.find(({ identityUid }) => identityUid === uid) ?? assert.fail();
      await fixture.api.call(RoleBindingsService.method.deleteRoleBinding, { uid: own.uid });
      await rejects(client.call(getGroup, { uid: group }), Code.PERMISSION_DENIED);
      await client.call(getGroup, { uid: org });
      await client.call(deleteGroup, { uid: org });
      await rejects(client.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
    });

    test('can invite people, make another owner, and give up its own role', async (t) => {
      const { client } = await newMachine();
      const org = await found({ client });
      const { code } = await client.call(GroupInvitesService.method.createGroupInvite, {
        parent: org,
        groupInvite: { roleUid: builtinRoleUid('owner'), ttl: { seconds: 600n } },
      });
      const provider = await newTestProvider(fixture, t);
      const upstream = await provider.token(`invited ${++count}`);
      await fixture.as(upstream).call(Auth.method.register, { code });
      const person = fixture.as(upstream);
      const { roleBindings } = await person.call(listRoleBindings, { group: org });
      assert.equal(roleBindings.length, 2);
      const own = roleBindings.find(({ identity }) => identity?.name.startsWith('caller')) ?? assert.fail();
      const weaker = { uid: own.uid, roleUid: builtinRoleUid('viewer') };
      await person.call(updateRoleBinding, { roleBinding: weaker });
      await client.call(getGroup, { uid: org });
      await rejects(client.call(deleteGroup, { uid: org }), Code.PERMISSION_DENIED);
      // A founder that lost all its roles can get one again, and no other identity of its group can.
      await person.call(RoleBindingsService.method.deleteRoleBinding, { uid: own.uid });
      await rejects(client.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
      const binding = { identityUid: own.identityUid, roleUid: builtinRoleUid('editor') };
      await person.call(createRoleBinding, { parent: org, roleBinding: binding });
      await client.call(getGroup, { uid: org });
      const other = await newMachine();
      const foreign = person.call(createRoleBinding, {
        parent: org,
        roleBinding: { ...binding, identityUid: other.uid },
      });
      assert.deepEqual((await rejects(foreign, Code.INVALID_ARGUMENT)).fields, ['identity_uid']);
    });

    if (fixture.wire === 'gRPC') {
      test('can create an organization together with an invite to it', async () => {
        const { client } = await newMachine('owner');
        const request = { group: newName(), role: builtinRoleUid('owner'), ttl: { seconds: 600n } };
        const { id } = await client.call(GroupInvites.method.createWithGroup, request);
        assert.equal((await client.call(getGroup, { uid: parentOf(id) })).name, request.group);
      });
    }

    test('has access through its own tokens, within their scopes', async () => {
      const { client, group } = await newMachine();
      const org = await found({ client });
      const child = (await client.call(createGroup, { parent: org, group: { name: 'inside' } })).uid;
      const aud = [fixture.server.url];
      const as = async (request: object) => fixture.as((await client.call(exchange, { aud, ...request })).token);
      const whole = await as({});
      await whole.call(getGroup, { uid: org });
      const inside = await as({ scopes: [child] });
      await inside.call(getGroup, { uid: child });
      await rejects(inside.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
      const atHome = await as({ scopes: [group] });
      await rejects(atHome.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
      const reading = await as({ cap: ['groups.list'] });
      await reading.call(getGroup, { uid: org });
      await rejects(reading.call(deleteGroup, { uid: child }), Code.PERMISSION_DENIED);
      for (const restricted of [inside, atHome, reading]) {
        await rejects(restricted.call(createGroup, { group: { name: newName() } }), Code.PERMISSION_DENIED);
      }
    });

    test('is told why it has access', async () => {
      const { client } = await newMachine();
      const uid = await found({ client });
      const explained = await client.call(AccessService.method.explain, { capability: 'groups.delete', uid });
      assert.equal(explained.allowed, true);
      assert.deepEqual(
        explained.bindings.map(({ groupUid, roleName }) => [groupUid, roleName]),
        [[uid, 'owner']],
      );
    });

    test('needs groups.create at some group', async () => {
      const group = await fixture.newGroup();
      const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
      await rejects(viewer.call(createGroup, { group: { name: newName() } }), Code.PERMISSION_DENIED);
    });
  },
  { env: { ...ALLOW_TEST_ISSUERS, WHARF_MAX_ORGS: 'unlimited' } },
);
