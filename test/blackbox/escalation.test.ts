import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { capabilityByName } from '../../src/contract/capabilities.ts';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole, type TestCaller } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const { createRoleBinding, updateRoleBinding, batchCreateRoleBindings } = RoleBindingsService.method;
const { createIdentity, updateIdentity } = IdentitiesService.method;
const { createRole, getRole, updateRole } = RolesService.method;

const OWNER = builtinRoleUid('owner');
const capabilities = (...names: string[]) => names.map((name) => capabilityByName(name) ?? assert.fail(name));

/** All capabilities for managing access, and almost no others. */
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

onEveryDatabaseAndWire('privilege escalation', (fixture) => {
  let group: string;
  let sub: string;
  let manager: TestCaller;
  /** Calls as the manager. */
  let api: Client;
  before(async () => {
    group = await fixture.newGroup();
    sub = await fixture.newGroup(group);
    const role = { name: 'access manager', capabilities: MANAGER };
    const { uid } = await fixture.api.call(createRole, { parent: group, role });
    manager = await callerWithRole(fixture.server, uid, group);
    api = fixture.as(await manager.token());
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
    (
      await fixture.api.call(createIdentity, {
        parent,
        identity: { name: 'machine', relationship: claimMatch(subject) },
      })
    ).uid;

  test('a role cannot be created with capabilities that the caller lacks', async () => {
    assert.deepEqual(
      (await roleBy(api, HELD)).capabilities,
      HELD.toSorted((a, b) => a - b),
    );
    await refused(roleBy(api, NOT_HELD), group, 'repo.create', 'tag.delete');
    await refused(roleBy(api, NOT_HELD, sub), sub, 'repo.create', 'tag.delete');
  });

  test('a role cannot be updated if it has capabilities that the caller lacks, before or after', async () => {
    const mine = await roleBy(api, HELD);
    const update = (uid: string, role: object) => api.call(updateRole, { role: { uid, ...role } });
    await refused(update(mine.uid, { capabilities: NOT_HELD }), group, 'repo.create', 'tag.delete');
    assert.deepEqual((await api.call(getRole, { uid: mine.uid })).capabilities, mine.capabilities);
    await update(mine.uid, { capabilities: capabilities('groups.list') });

    const stronger = await roleBy(fixture.api, NOT_HELD);
    await refused(update(stronger.uid, { description: 'mine now' }), group, 'repo.create', 'tag.delete');
    // A stronger role cannot be reduced either, because its holders would lose capabilities that the caller lacks.
    await refused(update(stronger.uid, { capabilities: HELD }), group, 'repo.create', 'tag.delete');
  });

  test('a role with capabilities that the caller lacks cannot be bound, to the caller or to others', async () => {
    const bind = (identityUid: string, roleUid: string, parent = group) =>
      api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid } });
    const custom = await roleBy(fixture.api, NOT_HELD);
    for (const identity of [manager.uid, await identityIn(group)]) {
      await refused(bind(identity, custom.uid), group, 'repo.create', 'tag.delete');
      await refused(bind(identity, OWNER), group);
      await refused(bind(identity, OWNER, sub), sub);
      await bind(identity, (await roleBy(api, HELD)).uid);
    }
  });

  test('the message names some missing capabilities, and the metadata names all', async () => {
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

  test('a batch of bindings is checked like single bindings', async () => {
    const identity = await identityIn(group);
    const fine = await roleBy(api, HELD);
    const requests = [fine.uid, OWNER].map((roleUid) => ({ roleBinding: { identityUid: identity, roleUid } }));
    await refused(api.call(batchCreateRoleBindings, { parent: group, requests }), group);
    const [request] = [{ roleBinding: { identityUid: identity } }];
    await refused(api.call(batchCreateRoleBindings, { parent: group, requests: [request], roleUid: OWNER }), group);
    await api.call(batchCreateRoleBindings, { parent: group, requests: [request], roleUid: fine.uid });
  });

  test('a binding cannot be updated to grant capabilities that the caller lacks', async () => {
    const identity = await identityIn(group);
    const fine = await roleBy(api, HELD);
    const mine = await api.call(createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: identity, roleUid: fine.uid },
    });
    await refused(api.call(updateRoleBinding, { roleBinding: { uid: mine.uid, roleUid: OWNER } }), group);
    // Nor can the binding of another identity be moved to the caller.
    const owners = await fixture.api.call(createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: identity, roleUid: OWNER },
    });
    const take = api.call(updateRoleBinding, { roleBinding: { uid: owners.uid, identityUid: manager.uid } });
    await refused(take, group);
    // Nor can the role of a stronger binding be reduced.
    const demote = api.call(updateRoleBinding, {
      roleBinding: { uid: owners.uid, roleUid: fine.uid, identityUid: manager.uid },
    });
    await refused(demote, group);
  });

  test('the login of an identity with capabilities that the caller lacks cannot be changed', async () => {
    const identity = await identityIn(sub);
    const takeOver = (relationship: ReturnType<typeof claimMatch>) =>
      api.call(updateIdentity, { identity: { uid: identity, relationship } });
    await takeOver(claimMatch('nobody minds: it has no roles'));
    await fixture.api.call(createRoleBinding, { parent: sub, roleBinding: { identityUid: identity, roleUid: OWNER } });
    await refused(takeOver(claimMatch('me')), sub);
    const clear = api.call(updateIdentity, {
      identity: { uid: identity, name: 'machine' },
      updateMask: { paths: ['*'] },
    });
    await refused(clear, sub);
    // Other fields can be updated.
    await api.call(updateIdentity, { identity: { uid: identity, name: 'renamed' } });
    await fixture.api.call(updateIdentity, { identity: { uid: identity, relationship: claimMatch('by the owner') } });
  });

  test('capabilities at another group do not count', async () => {
    const sibling = await fixture.newGroup(group);
    const { uid: roleUid } = await fixture.api.call(createRole, {
      parent: group,
      role: { name: 'binder', capabilities: capabilities('role_bindings.create') },
    });
    const identity = await identityIn(group);
    const caller = await callerWithRole(fixture.server, roleUid, group);
    // All capabilities of a viewer, but at one group only.
    await fixture.api.call(createRoleBinding, {
      parent: sub,
      roleBinding: { identityUid: caller.uid, roleUid: builtinRoleUid('viewer') },
    });
    const client = fixture.as(await caller.token());
    const bind = (parent: string) =>
      client.call(createRoleBinding, {
        parent,
        roleBinding: { identityUid: identity, roleUid: builtinRoleUid('viewer') },
      });
    await bind(sub);
    await refused(bind(sibling), sibling);
    await refused(bind(group), group);
  });

  test('an identity of a subgroup cannot get access to its parent or sibling', async () => {
    const sibling = await fixture.newGroup(group);
    const owner = await callerWithRole(fixture.server, 'owner', sub);
    const client = fixture.as(await owner.token());
    await roleBy(client, NOT_HELD, sub);
    for (const outside of [group, sibling, fixture.org]) {
      await refused(roleBy(client, HELD, outside), outside, 'roles.create');
      const binding = { identityUid: owner.uid, roleUid: OWNER };
      await refused(client.call(createRoleBinding, { parent: outside, roleBinding: binding }), outside);
      // Not even the owner of the organization can bind it there.
      const bindOutside = fixture.api.call(createRoleBinding, { parent: outside, roleBinding: binding });
      assert.deepEqual((await rejects(bindOutside, Code.INVALID_ARGUMENT)).fields, ['identity_uid']);
    }
  });

  test('a pull token creator can bind only the pull role', async () => {
    const creator = await callerWithRole(fixture.server, 'registry.pull_token_creator', group);
    const client = fixture.as(await creator.token());
    const { uid: identityUid } = await client.call(createIdentity, { parent: group, identity: { name: 'puller' } });
    const bind = (role: string) =>
      client.call(createRoleBinding, { parent: group, roleBinding: { identityUid, roleUid: builtinRoleUid(role) } });
    assert.equal((await bind('registry.pull')).role?.name, 'registry.pull');
    for (const role of ['registry.push', 'viewer', 'owner']) await refused(bind(role), group);
  });
});
