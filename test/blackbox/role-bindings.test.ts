import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const {
  createRoleBinding,
  getRoleBinding,
  listRoleBindings,
  updateRoleBinding,
  deleteRoleBinding,
  batchCreateRoleBindings,
} = RoleBindingsService.method;
const { createIdentity, updateIdentity, deleteIdentity } = IdentitiesService.method;
const { createRole, updateRole, deleteRole } = RolesService.method;
const { createGroup, updateGroup, deleteGroup, listGroups } = GroupsService.method;

const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');
const MISSING_UID = 'f'.repeat(40);

onEveryDatabaseAndWire('role bindings', (fixture) => {
  let group: string;
  before(async () => {
    group = await fixture.newGroup();
  });

  const identityIn = async (parent: string, name = 'machine') =>
    (await fixture.api.call(createIdentity, { parent, identity: { name } })).uid;

  const bind = (identityUid: string, roleUid: string, parent = group) =>
    fixture.api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid } });

  const eventsOf = async (subject: string) => {
    const rows = await fixture.db.all<{ type: string; scope: string; body_type: string }>(
      'SELECT type, scope, body_type FROM outbox WHERE subject = $1 ORDER BY id',
      subject,
    );
    return rows.map((row) => ({ ...row }));
  };

  test('a binding contains the current identity, group and role', async () => {
    const { api, org } = fixture;
    const { uid: parent } = await api.call(createGroup, {
      parent: org,
      group: { name: `hydrated ${group.slice(-4)}`, description: 'of people' },
    });
    const { uid: identityUid } = await api.call(createIdentity, {
      parent,
      identity: {
        name: 'ci',
        description: 'builds',
        relationship: {
          case: 'claimMatch',
          value: {
            iss: { case: 'issuer', value: 'https://issuer.example.com' },
            sub: { case: 'subjectPattern', value: 'repo:.*' },
          },
        },
      },
    });
    const binding = await bind(identityUid, VIEWER, parent);
    assert.match(binding.uid, new RegExp(`^${parent}/[0-9a-f]{16}$`));
    assert.equal(binding.identityUid, identityUid);
    assert.equal(binding.roleUid, VIEWER);
    assert.ok(binding.createTime && binding.updateTime);
    const { $typeName: _1, ...identity } = binding.identity ?? assert.fail();
    assert.deepEqual(identity, {
      uid: identityUid,
      name: 'ci',
      description: 'builds',
      subject: 'repo:.*',
      issuer: 'https://issuer.example.com',
      email: '',
    });
    const { $typeName: _2, ...inGroup } = binding.group ?? assert.fail();
    assert.deepEqual(inGroup, { uid: parent, name: `hydrated ${group.slice(-4)}`, description: 'of people' });
    const { $typeName: _3, ...role } = binding.role ?? assert.fail();
    assert.deepEqual(role, { uid: VIEWER, name: 'viewer', description: 'Viewer Role (built-in)' });
    assert.deepEqual(await api.call(getRoleBinding, { uid: binding.uid }), binding);
    assert.deepEqual((await api.call(listRoleBindings, { uidp: { childrenOf: parent } })).roleBindings, [binding]);

    await api.call(updateIdentity, { identity: { uid: identityUid, name: 'renamed' } });
    await api.call(updateGroup, { group: { uid: parent, description: 'renamed too' } });
    const again = await api.call(getRoleBinding, { uid: binding.uid });
    assert.equal(again.identity?.name, 'renamed');
    assert.equal(again.group?.description, 'renamed too');
    assert.deepEqual(again.updateTime, binding.updateTime);
  });

  test('a binding needs an identity and a role', async () => {
    const identity = await identityIn(group);
    const bad = async (identityUid: string, roleUid: string, ...fields: string[]) =>
      assert.deepEqual((await rejects(bind(identityUid, roleUid), Code.INVALID_ARGUMENT)).fields, fields);
    await bad('', '', 'identity_uid', 'role_uid');
    await bad(identity, '', 'role_uid');
    await bad('me', 'owner', 'identity_uid', 'role_uid');
    await bad(`${group}/${'f'.repeat(16)}`, VIEWER, 'identity_uid');
    await bad(`${group}/${'0'.repeat(16)}`, VIEWER, 'identity_uid');
    await bad(identity, MISSING_UID, 'role_uid');
    await bad(identity, `${group}/${'0'.repeat(16)}`, 'role_uid');
  });

  test('an identity can be bound in its group and descendants, with the roles that exist there', async () => {
    const { api } = fixture;
    const [here, sibling] = [await fixture.newGroup(group), await fixture.newGroup(group)];
    const below = await fixture.newGroup(here);
    const role = (parent: string) =>
      api.call(createRole, { parent, role: { name: 'lister', capabilities: [Capability.CAP_IAM_GROUPS_LIST] } });
    const identity = await identityIn(here);
    const [inGroup, inHere, inBelow, inBeside] = await Promise.all([group, here, below, sibling].map(role));
    assert.ok(inGroup && inHere && inBelow && inBeside);

    for (const { uid } of [inGroup, inHere]) assert.equal((await bind(identity, uid, here)).role?.uid, uid);
    for (const { uid } of [inGroup, inHere, inBelow]) await bind(identity, uid, below);
    for (const { uid } of [inBelow, inBeside]) {
      const error = await rejects(bind(identity, uid, here), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['role_uid']);
    }
    // A missing identity gets the same error, so that it does not reveal what exists.
    const absent = `${here}/${'0'.repeat(16)}`;
    for (const parent of [group, sibling]) {
      for (const uid of [identity, absent]) {
        const error = await rejects(bind(uid, VIEWER, parent), Code.INVALID_ARGUMENT);
        assert.deepEqual(error.fields, ['identity_uid']);
        assert.match(error.message, /only in its own group and below/);
      }
    }
  });

  test('a person can be bound anywhere', async () => {
    const { api, org } = fixture;
    const { roleBindings } = await api.call(listRoleBindings, { group: org, role: builtinRoleUid('operator') });
    const person = roleBindings.find(({ identityUid }) => !identityUid.includes('/'))?.identityUid ?? assert.fail();
    assert.equal((await bind(person, VIEWER, await fixture.newGroup(group))).identity?.name, 'owner');
  });

  test('a role or identity that is deleted concurrently is never bound', async () => {
    const { api } = fixture;
    const roles = await Promise.all(
      Array.from({ length: 10 }, (_, i) => api.call(createRole, { parent: group, role: { name: `short-lived ${i}` } })),
    );
    const identity = await identityIn(group);
    const succeeded = (work: Promise<unknown>) =>
      work.then(
        () => true,
        () => false,
      );
    for (const [i, { uid }] of roles.entries()) {
      const machine = await identityIn(group, `short-lived ${i}`);
      const [bound, deleted] = await Promise.all([
        succeeded(bind(identity, uid)),
        succeeded(api.call(deleteRole, { uid })),
      ]);
      assert.notEqual(bound, deleted);
      await Promise.all([succeeded(bind(machine, VIEWER)), api.call(deleteIdentity, { uid: machine })]);
      assert.equal((await api.call(listRoleBindings, { identity: machine })).totalCount, 0n);
    }
  });

  test('a second equal binding is refused with the uid of the first', async () => {
    const { api } = fixture;
    const identity = await identityIn(group);
    const first = await bind(identity, VIEWER);
    const error = await rejects(bind(identity, VIEWER), Code.ALREADY_EXISTS);
    assert.equal(error.detail('ResourceInfo')?.resourceName, first.uid);
    const second = await bind(identity, EDITOR);
    const same = api.call(updateRoleBinding, { roleBinding: { uid: second.uid, roleUid: VIEWER } });
    await rejects(same, Code.ALREADY_EXISTS);
    await api.call(deleteRoleBinding, { uid: first.uid });
    await api.call(updateRoleBinding, { roleBinding: { uid: second.uid, roleUid: VIEWER } });
    await bind(identity, EDITOR);
  });

  test('the role and the identity of a binding can be changed', async () => {
    const { api } = fixture;
    const [one, other] = [await identityIn(group), await identityIn(group, 'other')];
    const { uid, createTime } = await bind(one, VIEWER);
    const promoted = await api.call(updateRoleBinding, { roleBinding: { uid, roleUid: EDITOR } });
    assert.equal(promoted.role?.name, 'editor');
    assert.equal(promoted.identityUid, one);
    const moved = await api.call(updateRoleBinding, {
      roleBinding: { uid, identityUid: other, roleUid: VIEWER },
      updateMask: { paths: ['identity_uid'] },
    });
    assert.equal(moved.identity?.name, 'other');
    assert.equal(moved.role?.name, 'editor');
    assert.deepEqual(moved.createTime, createTime);
    assert.equal((await api.call(listRoleBindings, { identity: one })).totalCount, 0n);
    assert.deepEqual((await api.call(listRoleBindings, { identity: other, role: EDITOR })).roleBindings, [moved]);

    const update = (roleBinding: object, paths: string[]) =>
      api.call(updateRoleBinding, { roleBinding: { uid, ...roleBinding }, updateMask: { paths } });
    assert.deepEqual((await rejects(update({}, ['role_uid']), Code.INVALID_ARGUMENT)).fields, ['role_uid']);
    assert.deepEqual((await rejects(update({ roleUid: VIEWER }, ['*']), Code.INVALID_ARGUMENT)).fields, [
      'identity_uid',
    ]);
    assert.deepEqual(
      (await rejects(update({ identityUid: `${group}/${'f'.repeat(16)}` }, ['identity_uid']), Code.INVALID_ARGUMENT))
        .fields,
      ['identity_uid'],
    );
  });

  test('deleting a binding twice succeeds and emits one event', async () => {
    const { api } = fixture;
    const { uid } = await bind(await identityIn(group), VIEWER);
    await api.call(deleteRoleBinding, { uid });
    await api.call(deleteRoleBinding, { uid });
    await rejects(api.call(getRoleBinding, { uid }), Code.NOT_FOUND);
    assert.deepEqual(
      (await eventsOf(uid)).map(({ type, scope }) => ({ type, scope })),
      ['created', 'deleted'].map((what) => ({ type: `dev.chainguard.api.iam.rolebindings.${what}.v1`, scope: group })),
    );
  });

  test('bindings are filtered by identity, group and role, and paged', async () => {
    const { api } = fixture;
    const top = await fixture.newGroup(group);
    const below = await fixture.newGroup(top);
    const machines = await Promise.all(Array.from({ length: 30 }, (_, i) => identityIn(top, `machine ${i}`)));
    const requests = machines.map((identityUid, i) => ({
      roleBinding: { identityUid, roleUid: i % 2 === 0 ? VIEWER : EDITOR },
    }));
    for (const parent of [top, below]) {
      await api.call(batchCreateRoleBindings, { parent, requests: requests.slice(0, 25) });
      await api.call(batchCreateRoleBindings, { parent, requests: requests.slice(25) });
    }
    const all = async (request: object) => {
      const found: string[] = [];
      let pageToken = '';
      let total: bigint | undefined;
      do {
        const page = await api.call(listRoleBindings, {
          uidp: { descendantsOf: top },
          pageSize: 7,
          pageToken,
          ...request,
        });
        for (const { identity, group: boundGroup, role, identityUid, uid } of page.roleBindings) {
          assert.equal(identity?.uid, identityUid);
          assert.match(identity?.name ?? '', /^machine /);
          assert.ok(boundGroup && uid.startsWith(`${boundGroup.uid}/`) && role?.name);
          found.push(uid);
        }
        total = page.totalCount;
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      assert.equal(new Set(found).size, found.length);
      assert.equal(total, BigInt(found.length));
      return found.length;
    };
    assert.equal(await all({}), 60);
    assert.equal(await all({ orderBy: 'create_time desc' }), 60);
    assert.equal(await all({ group: top }), 30);
    assert.equal(await all({ role: VIEWER }), 30);
    assert.equal(await all({ role: VIEWER, group: below, orderBy: 'update_time' }), 15);
    assert.equal(await all({ identity: machines[3] }), 2);
    assert.equal(await all({ identity: machines[3], role: VIEWER }), 0);
    assert.equal(await all({ identity: machines[3], role: EDITOR, group: below }), 1);
  });

  test('a list contains only the bindings in reach of the caller', async () => {
    const { as, server } = fixture;
    const [here, sibling] = [await fixture.newGroup(group), await fixture.newGroup(group)];
    const viewer = await callerWithRole(server, 'viewer', here);
    const hidden = await bind(await identityIn(sibling), VIEWER, sibling);
    const caller = as(await viewer.token());
    const { roleBindings, totalCount } = await caller.call(listRoleBindings, {});
    assert.deepEqual(
      roleBindings.map(({ identityUid }) => identityUid),
      [viewer.uid],
    );
    assert.equal(totalCount, 1n);
    assert.equal((await caller.call(listRoleBindings, { role: VIEWER })).totalCount, 1n);
    await rejects(caller.call(getRoleBinding, { uid: hidden.uid }), Code.PERMISSION_DENIED);
    await rejects(caller.call(deleteRoleBinding, { uid: hidden.uid }), Code.PERMISSION_DENIED);
  });

  test('a batch creates up to 25 bindings, all or none', async () => {
    const { api } = fixture;
    const parent = await fixture.newGroup(group);
    const machines = await Promise.all(Array.from({ length: 26 }, (_, i) => identityIn(parent, `machine ${i}`)));
    const requests = machines.map((identityUid) => ({ roleBinding: { identityUid, roleUid: VIEWER } }));
    const count = async () => (await api.call(listRoleBindings, { uidp: { childrenOf: parent } })).totalCount;
    const refused = async (batch: object, ...fields: string[]) => {
      const error = await rejects(api.call(batchCreateRoleBindings, { parent, ...batch }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, fields);
      assert.equal(await count(), 0n);
    };
    await refused({}, 'requests');
    await refused({ requests }, 'requests');
    const some = requests.slice(0, 3);
    await refused({ requests: [...some, {}] }, 'requests[3].role_binding');
    await refused(
      { requests: [...some, { roleBinding: { identityUid: machines[3] } }] },
      'requests[3].role_binding.role_uid',
    );
    await refused(
      { requests: [...some, { roleBinding: { identityUid: `${group}/${'f'.repeat(16)}` } }], roleUid: VIEWER },
      'requests[3].role_binding.identity_uid',
    );
    await refused({ requests: some, roleUid: EDITOR }, 'requests[0].role_binding.role_uid');
    await refused({ requests: [{ ...some[0], parent: group }] }, 'requests[0].parent');
    await rejects(api.call(batchCreateRoleBindings, { parent, requests: [...some, ...some] }), Code.ALREADY_EXISTS);
    assert.equal(await count(), 0n);

    const { roleBindings } = await api.call(batchCreateRoleBindings, {
      parent,
      requests: requests.slice(0, 25).map((request) => ({ ...request, parent })),
    });
    assert.deepEqual(
      roleBindings.map(({ identity }) => identity?.uid),
      machines.slice(0, 25),
    );
    assert.ok(
      roleBindings.every(({ group: boundGroup, role }) => boundGroup?.uid === parent && role?.name === 'viewer'),
    );
    assert.equal(await count(), 25n);
    const [, ...events] = await eventsOf(parent);
    assert.deepEqual(events, [
      {
        type: 'dev.chainguard.api.iam.rolebindings.created.batch.v1',
        scope: parent,
        body_type: 'chainguard.platform.iam.RoleBindingBatch',
      },
    ]);

    const [one = '', other = ''] = machines;
    const withDefault = await api.call(batchCreateRoleBindings, {
      parent,
      roleUid: EDITOR,
      requests: [{ roleBinding: { identityUid: one } }, { roleBinding: { identityUid: other, roleUid: EDITOR } }],
    });
    assert.deepEqual(
      withDefault.roleBindings.map(({ roleUid }) => roleUid),
      [EDITOR, EDITOR],
    );
  });

  test('bindings take effect and end with the next request', async () => {
    const { api, as, server } = fixture;
    const here = await fixture.newGroup(group);
    const machine = await callerWithRole(server, 'apk.push', here);
    const caller = as(await machine.token());
    const { uid } = await bind(machine.uid, EDITOR, here);
    assert.equal((await caller.call(listRoleBindings, {})).totalCount, 2n);
    await api.call(deleteRoleBinding, { uid });
    await rejects(caller.call(listRoleBindings, {}), Code.PERMISSION_DENIED);
  });

  test('the creator of an organization is bound to it and can bind others', async () => {
    const { api } = fixture;
    const { uid: org } = await api.call(createGroup, { group: { name: `founded ${group.slice(-4)}` } });
    const { roleBindings } = await api.call(listRoleBindings, { group: org });
    assert.equal(roleBindings.length, 1);
    assert.equal(roleBindings[0]?.role?.name, 'operator');
    const identity = await identityIn(org);
    const { uid } = await bind(identity, builtinRoleUid('owner'), org);
    const error = await rejects(api.call(deleteGroup, { uid: org }), Code.FAILED_PRECONDITION);
    assert.match(error.message, /cannot delete group with child (identities|role bindings)/);
    await api.call(deleteRoleBinding, { uid });
    await api.call(deleteIdentity, { uid: identity });
    await api.call(deleteGroup, { uid: org });
    assert.equal((await api.call(listGroups, { uidp: { ids: [org] } })).groups.length, 0);
  });

  test('a renamed custom role shows its new name', async () => {
    const { api } = fixture;
    const { uid: roleUid } = await api.call(createRole, { parent: group, role: { name: 'before' } });
    const { uid } = await bind(await identityIn(group), roleUid);
    await api.call(updateRole, { role: { uid: roleUid, name: 'after' } });
    assert.equal((await api.call(getRoleBinding, { uid })).role?.name, 'after');
  });
});
