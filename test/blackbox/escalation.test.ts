import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { capabilityByName } from '../../src/contract/capabilities.ts';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { builtinUid, callerWith, type TestCaller } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const { createRoleBinding, updateRoleBinding, batchCreateRoleBindings } = RoleBindingsService.method;
const { createIdentity, updateIdentity } = IdentitiesService.method;
const { createRole, getRole, updateRole } = RolesService.method;

const OWNER = builtinUid('owner');
const capabilities = (...names: string[]) => names.map((name) => capabilityByName(name) ?? assert.fail(name));

/** All it takes to run access, and next to nothing that is worth having. */
const MANAGER = capabilities(
  ...['roles', 'role_bindings', 'identity'].flatMap((kind) =>
    ['list', 'create', 'update', 'delete'].map((verb) => `${kind}.${verb}`),
  ),
  'groups.list',
);
const HELD = capabilities('groups.list', 'roles.list');
const NOT_HELD = capabilities('groups.list', 'repo.create', 'tag.delete');

const claimMatch = (subject: string) => ({
  case: 'claimMatch' as const,
  value: {
    iss: { case: 'issuer' as const, value: 'https://issuer.test' },
    sub: { case: 'subject' as const, value: subject },
  },
});

everywhere('nobody hands out more than they hold', (bench) => {
  let group: string;
  let sub: string;
  let manager: TestCaller;
  /** Calls as the manager. */
  let api: Client;
  before(async () => {
    group = await bench.newGroup();
    sub = await bench.newGroup(group);
    const role = { name: 'access manager', capabilities: MANAGER };
    const { uid } = await bench.api.call(createRole, { parent: group, role });
    manager = await callerWith(bench.server, uid, group);
    api = bench.as(await manager.token());
  });

  async function refused(work: Promise<unknown>, scope: string, ...names: string[]): Promise<void> {
    const error = await rejects(work, Code.PERMISSION_DENIED);
    assert.ok(error.message.includes(scope), error.message);
    for (const name of names) assert.ok(error.message.includes(name), error.message);
    const { metadata } = error.detail('ErrorInfo') as { metadata: Record<string, string> };
    assert.equal(metadata.scope, scope);
    if (names.length > 0) assert.equal(metadata.capabilities, names.join(', '));
  }

  const roleBy = (client: Client, held: typeof HELD, parent = group) =>
    client.call(createRole, { parent, role: { name: 'made', capabilities: held } });

  const identityIn = async (parent: string, subject = 'machine') =>
    (await bench.api.call(createIdentity, { parent, identity: { name: 'machine', relationship: claimMatch(subject) } }))
      .uid;

  test('by creating a role', async () => {
    assert.deepEqual(
      (await roleBy(api, HELD)).capabilities,
      HELD.toSorted((a, b) => a - b),
    );
    await refused(roleBy(api, NOT_HELD), group, 'repo.create', 'tag.delete');
    await refused(roleBy(api, NOT_HELD, sub), sub, 'repo.create', 'tag.delete');
  });

  test('by changing a role', async () => {
    const mine = await roleBy(api, HELD);
    const update = (uid: string, role: object) => api.call(updateRole, { role: { uid, ...role } });
    await refused(update(mine.uid, { capabilities: NOT_HELD }), group, 'repo.create', 'tag.delete');
    assert.deepEqual((await api.call(getRole, { uid: mine.uid })).capabilities, mine.capabilities);
    await update(mine.uid, { capabilities: capabilities('groups.list') });

    const stronger = await roleBy(bench.api, NOT_HELD);
    await refused(update(stronger.uid, { description: 'mine now' }), group, 'repo.create', 'tag.delete');
    // What remains counts: one may make a role weaker than oneself.
    await update(stronger.uid, { capabilities: HELD });
  });

  test('by binding a role, to oneself or to others', async () => {
    const bind = (identityUid: string, roleUid: string, parent = group) =>
      api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid } });
    const custom = await roleBy(bench.api, NOT_HELD);
    for (const identity of [manager.uid, await identityIn(group)]) {
      await refused(bind(identity, custom.uid), group, 'repo.create', 'tag.delete');
      await refused(bind(identity, OWNER), group);
      await refused(bind(identity, OWNER, sub), sub);
      await bind(identity, (await roleBy(api, HELD)).uid);
    }
  });

  test('the message stays readable, and the metadata names everything', async () => {
    const work = api.call(createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: manager.uid, roleUid: OWNER },
    });
    const error = await rejects(work, Code.PERMISSION_DENIED);
    assert.match(error.message, / and [0-9]+ more on /);
    assert.ok(error.message.length < 500);
    const { metadata } = error.detail('ErrorInfo') as { metadata: Record<string, string> };
    assert.ok((metadata.capabilities ?? '').split(', ').length > 50);
  });

  test('by a batch of bindings', async () => {
    const identity = await identityIn(group);
    const fine = await roleBy(api, HELD);
    const requests = [fine.uid, OWNER].map((roleUid) => ({ roleBinding: { identityUid: identity, roleUid } }));
    await refused(api.call(batchCreateRoleBindings, { parent: group, requests }), group);
    const [request] = [{ roleBinding: { identityUid: identity } }];
    await refused(api.call(batchCreateRoleBindings, { parent: group, requests: [request], roleUid: OWNER }), group);
    await api.call(batchCreateRoleBindings, { parent: group, requests: [request], roleUid: fine.uid });
  });

  test('by changing a binding', async () => {
    const identity = await identityIn(group);
    const fine = await roleBy(api, HELD);
    const mine = await api.call(createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: identity, roleUid: fine.uid },
    });
    await refused(api.call(updateRoleBinding, { roleBinding: { uid: mine.uid, roleUid: OWNER } }), group);
    // Nor by handing what another has to somebody else.
    const owners = await bench.api.call(createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: identity, roleUid: OWNER },
    });
    const take = api.call(updateRoleBinding, { roleBinding: { uid: owners.uid, identityUid: manager.uid } });
    await refused(take, group);
    // Taking away needs no more than the permission to change.
    await api.call(updateRoleBinding, {
      roleBinding: { uid: owners.uid, roleUid: fine.uid, identityUid: manager.uid },
    });
  });

  test('by taking over the login of an identity', async () => {
    const identity = await identityIn(sub);
    const takeOver = (relationship: ReturnType<typeof claimMatch>) =>
      api.call(updateIdentity, { identity: { uid: identity, relationship } });
    await takeOver(claimMatch('nobody minds: it has no roles'));
    await bench.api.call(createRoleBinding, { parent: sub, roleBinding: { identityUid: identity, roleUid: OWNER } });
    await refused(takeOver(claimMatch('me')), sub);
    const clear = api.call(updateIdentity, {
      identity: { uid: identity, name: 'machine' },
      updateMask: { paths: ['*'] },
    });
    await refused(clear, sub);
    // What leaves the login alone is fine.
    await api.call(updateIdentity, { identity: { uid: identity, name: 'renamed' } });
    await bench.api.call(updateIdentity, { identity: { uid: identity, relationship: claimMatch('by the owner') } });
  });

  test('by holding something elsewhere', async () => {
    const beside = await bench.newGroup(group);
    const { uid: roleUid } = await bench.api.call(createRole, {
      parent: group,
      role: { name: 'binder', capabilities: capabilities('role_bindings.create') },
    });
    const identity = await identityIn(group);
    const caller = await callerWith(bench.server, roleUid, group);
    // All of a viewer, but in one group only.
    await bench.api.call(createRoleBinding, {
      parent: sub,
      roleBinding: { identityUid: caller.uid, roleUid: builtinUid('viewer') },
    });
    const client = bench.as(await caller.token());
    const bind = (parent: string) =>
      client.call(createRoleBinding, { parent, roleBinding: { identityUid: identity, roleUid: builtinUid('viewer') } });
    await bind(sub);
    await refused(bind(beside), beside);
    await refused(bind(group), group);
  });

  test('an identity of a subgroup never reaches its parent or sibling', async () => {
    const beside = await bench.newGroup(group);
    const owner = await callerWith(bench.server, 'owner', sub);
    const client = bench.as(await owner.token());
    await roleBy(client, NOT_HELD, sub);
    for (const place of [group, beside, bench.org]) {
      await refused(roleBy(client, HELD, place), place, 'roles.create');
      const binding = { identityUid: owner.uid, roleUid: OWNER };
      await refused(client.call(createRoleBinding, { parent: place, roleBinding: binding }), place);
      // Not even the owner of everything can lift it up.
      const lift = bench.api.call(createRoleBinding, { parent: place, roleBinding: binding });
      assert.deepEqual((await rejects(lift, Code.INVALID_ARGUMENT)).fields, ['identity_uid']);
    }
  });

  test('a pull token creator makes pull tokens and nothing else', async () => {
    const creator = await callerWith(bench.server, 'registry.pull_token_creator', group);
    const client = bench.as(await creator.token());
    const { uid: identityUid } = await client.call(createIdentity, { parent: group, identity: { name: 'puller' } });
    const bind = (role: string) =>
      client.call(createRoleBinding, { parent: group, roleBinding: { identityUid, roleUid: builtinUid(role) } });
    assert.equal((await bind('registry.pull')).role?.name, 'registry.pull');
    for (const role of ['registry.push', 'viewer', 'owner']) await refused(bind(role), group);
  });
});
