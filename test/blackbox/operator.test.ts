import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { builtinUid, callerWith, person, stranger } from '../support/callers.ts';
import { type Bench, everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const { createRole } = RolesService.method;
const { createRoleBinding, listRoleBindings } = RoleBindingsService.method;
const { createGroup, deleteGroup } = GroupsService.method;
const { createRepo, getRepoReadme, updateRepoReadme } = ReposService.method;

let count = 0;

const newRepo = async ({ api }: Bench, parent: string): Promise<string> =>
  (await api.call(createRepo, { parent, repo: { name: `repo-${++count}` } })).uid;

const writeReadme = (api: Client, uid: string, content: string) =>
  api.call(updateRepoReadme, { repoReadme: { uid, content } });

everywhere('the operator of a server', (bench) => {
  test('writes a README, which an owner cannot', async () => {
    const group = await bench.newGroup();
    const uid = await newRepo(bench, group);
    const owner = bench.as(await (await callerWith(bench.server, 'owner', group)).token());
    await rejects(writeReadme(owner, uid, '# No'), Code.PERMISSION_DENIED);
    await writeReadme(bench.api, uid, '# Yes');
    assert.equal((await owner.call(getRepoReadme, { uid })).content, '# Yes');
  });

  test('hands that on by a role; nobody else can', async () => {
    const group = await bench.newGroup();
    const uid = await newRepo(bench, group);
    const owner = bench.as(await (await callerWith(bench.server, 'owner', group)).token());
    const somebody = await stranger(bench.server, group);
    const { CAP_INTERNAL, CAP_REPO_UPDATE, CAP_REPO_INTERNAL_ADMIN } = Capability;
    const role = { name: 'writer', capabilities: [CAP_INTERNAL, CAP_REPO_UPDATE, CAP_REPO_INTERNAL_ADMIN] };
    await rejects(owner.call(createRole, { parent: group, role }), Code.PERMISSION_DENIED);
    const { uid: writer } = await bench.api.call(createRole, { parent: group, role });
    for (const roleUid of [writer, builtinUid('operator')]) {
      const roleBinding = { identityUid: somebody.uid, roleUid };
      await rejects(owner.call(createRoleBinding, { parent: group, roleBinding }), Code.PERMISSION_DENIED);
    }
    const roleBinding = { identityUid: somebody.uid, roleUid: writer };
    await bench.api.call(createRoleBinding, { parent: group, roleBinding });
    await writeReadme(bench.as(await somebody.token()), uid, '# By somebody');
  });

  test('runs the organizations that they create; what others create, those own', async () => {
    const founder = await person(bench.server, 'https://issuer.test');
    const roleBinding = { identityUid: founder.uid, roleUid: builtinUid('owner') };
    await bench.api.call(createRoleBinding, { parent: bench.org, roleBinding });
    for (const [api, expected] of [
      [bench.api, 'operator'],
      [bench.as(await founder.token()), 'owner'],
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
