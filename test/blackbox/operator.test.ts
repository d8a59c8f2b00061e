import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole, registeredCaller } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const { createRole } = RolesService.method;
const { createRoleBinding, listRoleBindings } = RoleBindingsService.method;
const { createGroup, deleteGroup } = GroupsService.method;
const { createRepo, getRepoReadme, updateRepoReadme } = ReposService.method;

let count = 0;

const newRepo = async ({ api }: ApiFixture, parent: string): Promise<string> =>
  (await api.call(createRepo, { parent, repo: { name: `repo-${++count}` } })).uid;

const writeReadme = (api: Client, uid: string, content: string) =>
  api.call(updateRepoReadme, { repoReadme: { uid, content } });

onEveryDatabaseAndWire('the operator of a server', (fixture) => {
  test('an operator can write a README, and an owner cannot', async () => {
    const group = await fixture.newGroup();
    const uid = await newRepo(fixture, group);
    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    await rejects(writeReadme(owner, uid, '# No'), Code.PERMISSION_DENIED);
    await writeReadme(fixture.api, uid, '# Yes');
    assert.equal((await owner.call(getRepoReadme, { uid })).content, '# Yes');
  });

  test('an operator can grant its capabilities by a role, and an owner cannot', async () => {
    const group = await fixture.newGroup();
    const uid = await newRepo(fixture, group);
    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    const caller = await callerWithoutRole(fixture.server, group);
    const { CAP_INTERNAL, CAP_REPO_UPDATE, CAP_REPO_INTERNAL_ADMIN } = Capability;
    const role = { name: 'writer', capabilities: [CAP_INTERNAL, CAP_REPO_UPDATE, CAP_REPO_INTERNAL_ADMIN] };
    await rejects(owner.call(createRole, { parent: group, role }), Code.PERMISSION_DENIED);
    const { uid: writer } = await fixture.api.call(createRole, { parent: group, role });
    for (const roleUid of [writer, builtinRoleUid('operator')]) {
      const roleBinding = { identityUid: caller.uid, roleUid };
      await rejects(owner.call(createRoleBinding, { parent: group, roleBinding }), Code.PERMISSION_DENIED);
    }
    const roleBinding = { identityUid: caller.uid, roleUid: writer };
    await fixture.api.call(createRoleBinding, { parent: group, roleBinding });
    await writeReadme(fixture.as(await caller.token()), uid, '# By somebody');
  });

  test('the creator of an organization becomes its operator if it is an operator, or else its owner', async () => {
    const founder = await registeredCaller(fixture.server, 'https://issuer.test');
    const roleBinding = { identityUid: founder.uid, roleUid: builtinRoleUid('owner') };
    await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
    for (const [api, expected] of [
      [fixture.api, 'operator'],
      [fixture.as(await founder.token()), 'owner'],
    ] as const) {
      const { uid } = await api.call(createGroup, { group: { name: `organization ${++count}` } });
      const { roleBindings } = await api.call(listRoleBindings, { uidp: { childrenOf: uid } });
      assert.deepEqual(
        roleBindings.map(({ role }) => role?.name),
        [expected],
      );
      await api.call(deleteGroup, { uid });
    }
  });
});
