import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { capabilitiesIn } from '../../src/contract/capabilities.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { type RoleSchema, RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { Roles as V1Roles } from '../../src/contract/gen/platform/iam/v1/role.platform_pb.js';
import { builtinRoles } from '../../src/domains/iam/roles/builtin-roles.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { createRole, getRole, listRoles, updateRole, deleteRole } = RolesService.method;
const { createRoleBinding, deleteRoleBinding, listRoleBindings } = RoleBindingsService.method;
const { listGroups } = GroupsService.method;

const { CAP_IAM_GROUPS_LIST, CAP_IAM_GROUPS_CREATE, CAP_IAM_ROLES_LIST, CAP_REPO_INTERNAL_ADMIN } = Capability;

onEveryDatabaseAndWire('roles', (fixture) => {
  let group: string;
  before(async () => {
    group = await fixture.newGroup();
  });

  const make = (role: MessageInitShape<typeof RoleSchema>, parent = group) =>
    fixture.api.call(createRole, { parent, role });

  test('every caller can list the built-in roles', async () => {
    const { api, as, server } = fixture;
    const unprivileged = as(await (await callerWithoutRole(server, group)).token());
    for (const caller of [api, unprivileged]) {
      const { roles } = await caller.call(listRoles, { uidp: { inRoot: true } });
      assert.deepEqual(
        roles.map(({ uid, name, description, capabilities }) => ({ uid, name, description, capabilities })),
        builtinRoles
          .map((role) => ({ ...role, capabilities: capabilitiesIn(role.capabilities) }))
          .toSorted((a, b) => (a.uid < b.uid ? -1 : 1)),
      );
      const [viewer, another] = (await caller.call(listRoles, { name: 'viewer', uidp: { inRoot: true } })).roles;
      assert.equal(viewer?.uid, '63921b2c44617e3f2603851537be0123af4a57d7');
      assert.equal(viewer?.description, 'Viewer Role (built-in)');
      assert.equal(another, undefined);
      assert.deepEqual(await caller.call(getRole, { uid: viewer.uid }), viewer);
    }
    const all = await unprivileged.call(listRoles, {});
    assert.equal(all.roles.length, builtinRoles.length);
    assert.equal(all.totalCount, BigInt(builtinRoles.length));
    await rejects(api.call(listRoles, {}, {}), Code.UNAUTHENTICATED);
    await rejects(api.call(getRole, { uid: builtinRoleUid('viewer') }, {}), Code.UNAUTHENTICATED);
  });

  test('built-in roles cannot be updated or deleted', async () => {
    const uid = builtinRoleUid('viewer');
    await rejects(fixture.api.call(updateRole, { role: { uid, name: 'mine' } }), Code.PERMISSION_DENIED);
    for (const id of ['v2', 'v2beta1'].map((version) => `chainguard.platform.iam.${version}.RolesService/DeleteRole`)) {
      const refused = fixture.api.call(deleteRole, { uid }, { token: fixture.server.token, id });
      const { message } = await rejects(refused, Code.PERMISSION_DENIED);
      assert.match(message, /viewer is a built-in role, which no caller can change or delete; create a role/);
    }
    const v1 = await rejects(fixture.api.call(V1Roles.method.delete, { id: uid }), Code.PERMISSION_DENIED);
    assert.match(v1.message, /viewer is a built-in role/);
    assert.equal((await fixture.api.call(getRole, { uid })).name, 'viewer');
  });

  test('a custom role can be read, listed, changed and deleted', async () => {
    const { api } = fixture;
    const role = await make({ name: 'life', description: 'first', capabilities: [CAP_IAM_GROUPS_LIST] });
    assert.match(role.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.ok(role.createTime);
    assert.deepEqual(role.updateTime, role.createTime);
    assert.deepEqual(await api.call(getRole, { uid: role.uid }), role);
    assert.deepEqual((await api.call(listRoles, { uidp: { childrenOf: group }, name: 'life' })).roles, [role]);

    const changed = await api.call(updateRole, {
      role: { uid: role.uid, name: 'new life', capabilities: [CAP_IAM_ROLES_LIST] },
      updateMask: { paths: ['capabilities'] },
    });
    assert.equal(changed.name, 'life');
    assert.equal(changed.description, 'first');
    assert.deepEqual(changed.capabilities, [CAP_IAM_ROLES_LIST]);
    assert.deepEqual(changed.createTime, role.createTime);

    await api.call(deleteRole, { uid: role.uid });
    await rejects(api.call(getRole, { uid: role.uid }), Code.NOT_FOUND);
    await rejects(api.call(deleteRole, { uid: role.uid }), Code.NOT_FOUND);
  });

  test('capabilities are stored once each, sorted by number, and a role can have none', async () => {
    const { capabilities } = await make({
      name: 'untidy',
      capabilities: [CAP_IAM_ROLES_LIST, CAP_IAM_GROUPS_LIST, CAP_IAM_ROLES_LIST, CAP_IAM_GROUPS_CREATE],
    });
    assert.deepEqual(capabilities, [CAP_IAM_GROUPS_CREATE, CAP_IAM_GROUPS_LIST, CAP_IAM_ROLES_LIST]);
    assert.deepEqual((await make({ name: 'empty' })).capabilities, []);
  });

  test('validation errors name the invalid field', async () => {
    const bad = async (role: MessageInitShape<typeof RoleSchema>, field: string, pattern: RegExp) => {
      const error = await rejects(make(role), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, [field]);
      assert.match(error.message, pattern);
    };
    await bad({}, 'name', /is required/);
    await bad({ name: 'Upper' }, 'name', /must match/);
    await bad({ name: 'fine', description: 'two\nlines' }, 'description', /one line/);
    await bad(
      { name: 'fine', capabilities: [CAP_IAM_GROUPS_LIST, 987654 as Capability] },
      'capabilities[1]',
      /capability/i,
    );
    await bad({ name: 'fine', capabilities: [Capability.UNKNOWN] }, 'capabilities[0]', /UNKNOWN/);
    await bad(
      { name: 'fine', capabilities: [CAP_REPO_INTERNAL_ADMIN] },
      'capabilities[0]',
      /requires internal in the same role/,
    );
    assert.deepEqual((await rejects(fixture.api.call(getRole, { uid: 'x' }), Code.INVALID_ARGUMENT)).fields, ['uid']);
  });

  test('role names need not be unique', async () => {
    const [one, other] = [await make({ name: 'twin' }), await make({ name: 'twin' })];
    const { roles } = await fixture.api.call(listRoles, { name: 'twin', uidp: { descendantsOf: group } });
    assert.deepEqual(
      roles.map(({ uid }) => uid),
      [one.uid, other.uid].sort(),
    );
    assert.ok((await make({ name: 'viewer' })).uid.startsWith(group));
  });

  test('a custom role is visible to callers that may list roles in its group', async () => {
    const { as, server } = fixture;
    const [here, elsewhere] = [await fixture.newGroup(group), await fixture.newGroup(group)];
    const mine = await make({ name: 'mine' }, here);
    const theirs = await make({ name: 'theirs' }, elsewhere);
    const viewer = as(await (await callerWithRole(server, 'viewer', here)).token());
    assert.deepEqual(await viewer.call(getRole, { uid: mine.uid }), mine);
    const { roles, totalCount } = await viewer.call(listRoles, { pageSize: 200 });
    assert.equal(totalCount, BigInt(builtinRoles.length + 1));
    assert.ok(roles.some(({ uid }) => uid === mine.uid));
    assert.deepEqual((await viewer.call(listRoles, { uidp: { descendantsOf: here } })).roles, [mine]);
    for (const uid of [theirs.uid, `${elsewhere}/${'0'.repeat(16)}`]) {
      const error = await rejects(viewer.call(getRole, { uid }), Code.PERMISSION_DENIED);
      assert.match(error.message, /roles\.list/);
    }
  });

  test('a role in use cannot be deleted', async () => {
    const { api, server } = fixture;
    const { uid } = await make({ name: 'in use', capabilities: [CAP_IAM_GROUPS_LIST] });
    const { uid: identity } = await callerWithRole(server, uid, group);
    const error = await rejects(api.call(deleteRole, { uid }), Code.FAILED_PRECONDITION);
    assert.equal(error.message, 'Precondition failed: cannot delete role with role bindings');
    assert.deepEqual(error.detail('PreconditionFailure')?.violations, [
      { type: 'RESOURCE_IN_USE', subject: uid, description: 'cannot delete role with role bindings' },
    ]);
    for (const binding of (await api.call(listRoleBindings, { identity })).roleBindings) {
      await api.call(deleteRoleBinding, { uid: binding.uid });
    }
    await api.call(deleteRole, { uid });
  });

  test('changes of a role take effect with the next request', async () => {
    const { api, as, server } = fixture;
    const { uid } = await make({ name: 'changing' });
    const machine = await callerWithRole(server, uid, group);
    const caller = as(await machine.token());
    const seen = async () => (await caller.call(listGroups, {})).groups.length;
    const isDenied = () => rejects(seen(), Code.PERMISSION_DENIED);
    await isDenied();
    await api.call(updateRole, { role: { uid, capabilities: [CAP_IAM_GROUPS_LIST] } });
    assert.notEqual(await seen(), 0);
    await api.call(updateRole, { role: { uid }, updateMask: { paths: ['capabilities'] } });
    await isDenied();
    const roleBinding = { identityUid: machine.uid, roleUid: builtinRoleUid('viewer') };
    const binding = await api.call(createRoleBinding, { parent: group, roleBinding });
    assert.notEqual(await seen(), 0);
    await api.call(deleteRoleBinding, { uid: binding.uid });
    await isDenied();
  });
});
