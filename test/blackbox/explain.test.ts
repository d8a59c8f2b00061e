import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../../src/access/create-caller.ts';
import { Code } from '../../src/base/errors.ts';
import { parseUid } from '../../src/base/uid.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { AccessService, type ExplainResponse } from '../../src/contract/gen/wharfinger/access/v1/access_pb.js';
import { explainOperations } from '../../src/domains/iam/access/explain.ts';
import type { ReadContext } from '../../src/resource/operation.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole, registeredCaller } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { explain } = AccessService.method;
const { createRoleBinding, deleteRoleBinding } = RoleBindingsService.method;
const { createRole } = RolesService.method;

onEveryDatabaseAndWire('explain', (fixture) => {
  const bind = (identityUid: string, roleUid: string, parent: string) =>
    fixture.api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid } });

  test('an allowed capability is explained by the bindings at the group and its ancestors', async () => {
    const top = await fixture.newGroup();
    const inner = await fixture.newGroup(top);
    const viewer = await callerWithRole(fixture.server, 'viewer', top);
    const api = fixture.as(await viewer.token());
    const response = await api.call(explain, { capability: 'groups.list', uid: inner });
    assert.equal(response.identity, viewer.uid);
    assert.equal(response.allowed, true);
    assert.match(response.explanation, new RegExp(`${top} gives groups\\.list on ${inner}`));
    const [binding, ...more] = response.bindings;
    assert.deepEqual(more, []);
    assert.equal(binding?.groupUid, top);
    assert.equal(binding?.roleUid, builtinRoleUid('viewer'));
    assert.equal(binding?.roleName, 'viewer');
    assert.deepEqual([response.groups, response.roles], [[], []]);

    // A second binding, of a custom role, is named too. The outermost binding comes first.
    const role = { name: 'only groups', capabilities: [Capability.CAP_IAM_GROUPS_LIST] };
    const { uid: own } = await fixture.api.call(createRole, { parent: top, role });
    const second = await bind(viewer.uid, own, inner);
    const both = await api.call(explain, { capability: 'groups.list', uid: inner });
    assert.deepEqual(
      both.bindings.map(({ groupUid, roleName }) => ({ groupUid, roleName })),
      [
        { groupUid: top, roleName: 'viewer' },
        { groupUid: inner, roleName: 'only groups' },
      ],
    );
    const repos = await api.call(explain, { capability: 'repo.list', uid: inner });
    assert.equal(repos.bindings.length, 1);

    // Deleted bindings do not count.
    await fixture.api.call(deleteRoleBinding, { uid: second.uid });
    await fixture.api.call(deleteRoleBinding, { uid: binding?.uid ?? '' });
    assert.equal((await api.call(explain, { capability: 'groups.list', uid: inner })).allowed, false);
  });

  test('a denied capability is explained by the groups and roles that would grant it', async () => {
    const top = await fixture.newGroup();
    const inner = await fixture.newGroup(top);
    const viewer = await callerWithRole(fixture.server, 'viewer', top);
    const api = fixture.as(await viewer.token());
    const response = await api.call(explain, { capability: 'repo.create', uid: `${inner}/0123456789abcdef` });
    assert.equal(response.allowed, false);
    assert.deepEqual(response.bindings, []);
    assert.deepEqual(response.groups, [inner, top]);
    assert.deepEqual(
      response.roles.map(({ name }) => name),
      ['owner', 'limited_owner', 'editor', 'registry.push', 'operator'],
    );
    assert.equal(response.roles[0]?.uid, builtinRoleUid('owner'));
    assert.match(response.explanation, /No role binding gives repo\.create/);

    const notGranted = await api.call(explain, { capability: 'skills.write', uid: inner });
    assert.deepEqual(notGranted.roles, []);
    assert.match(notGranted.explanation, /no built-in role holds it/);
  });

  test('the explanation says that an identity of a group has no access outside of it', async () => {
    const [ownGroup, other] = [await fixture.newGroup(), await fixture.newGroup()];
    const machine = await callerWithRole(fixture.server, 'owner', ownGroup);
    const api = fixture.as(await machine.token());
    for (const uid of [other, fixture.org]) {
      const response = await api.call(explain, { capability: 'groups.list', uid });
      assert.equal(response.allowed, false);
      assert.deepEqual(response.groups, []);
      assert.match(response.explanation, new RegExp(`belongs to ${ownGroup} and has no access outside of it`));
    }
    const below = await callerWithoutRole(fixture.server, await fixture.newGroup(ownGroup));
    const about = await api.call(explain, { capability: 'groups.list', uid: ownGroup, identity: below.uid });
    assert.equal(about.allowed, false);
    assert.deepEqual(about.groups, []);
  });

  test('the explanation for a person does not reveal whether a group exists', async () => {
    const alice = await registeredCaller(fixture.server, 'https://login.example.com');
    const api = fixture.as(await alice.token());
    const group = await fixture.newGroup();
    for (const uid of [group, `${fixture.org}/${'0'.repeat(16)}`]) {
      const response = await api.call(explain, { capability: 'groups.list', uid });
      assert.equal(response.allowed, false);
      assert.deepEqual(response.groups, [uid, fixture.org]);
    }
  });

  test('explaining the access of another identity needs role_bindings.list at the group', async () => {
    const top = await fixture.newGroup();
    const inner = await fixture.newGroup(top);
    const editor = await callerWithRole(fixture.server, 'editor', top);
    const viewer = await callerWithRole(fixture.server, 'viewer', inner);
    const puller = await callerWithRole(fixture.server, 'registry.pull', inner);
    const request = { capability: 'repo.create', uid: inner, identity: editor.uid };

    const seenByOwner = await fixture.api.call(explain, request);
    assert.equal(seenByOwner.allowed, true);
    assert.equal(seenByOwner.bindings[0]?.roleName, 'editor');

    // The viewer sees who has access to the inner group, but not the bindings at its ancestors.
    const seenByViewer = await fixture.as(await viewer.token()).call(explain, request);
    assert.equal(seenByViewer.allowed, true);
    assert.deepEqual(
      seenByViewer.bindings.map(({ uid, groupUid, roleUid, roleName }) => ({ uid, groupUid, roleUid, roleName })),
      [{ uid: '', groupUid: top, roleUid: '', roleName: '' }],
    );
    const error = await rejects(fixture.as(await puller.token()).call(explain, request), Code.PERMISSION_DENIED);
    assert.match(error.message, /role_bindings\.list/);
    await fixture.as(await puller.token()).call(explain, { ...request, identity: puller.uid });

    const missing = await fixture.api.call(explain, { ...request, identity: `${inner}/0123456789abcdef` });
    assert.equal(missing.allowed, false);
  });

  test('a token can grant less than the bindings, or more', async () => {
    const group = parseUid('group', await fixture.newGroup());
    const { uid: identity } = await callerWithRole(fixture.server, 'viewer', group);
    const capabilities = capabilitySetOf([Capability.CAP_REPO_CREATE]);
    // The caller of a token with a token scope, or with groups from an identity provider.
    const caller = createCaller(identity, undefined, [{ group, capabilities }]);
    const explainFor = async (capability: string) => {
      const operation = explainOperations[`${AccessService.typeName}/${explain.name}`];
      assert.ok(operation?.mode === 'read');
      const request = create(explain.input, { capability, uid: group });
      return (await operation.run({ db: fixture.db, caller } as ReadContext, request)) as ExplainResponse;
    };
    const less = await explainFor('groups.list');
    assert.equal(less.allowed, false);
    assert.equal(less.bindings[0]?.roleName, 'viewer');
    assert.match(less.explanation, /this token is restricted to less/);
    assert.deepEqual([less.groups, less.roles], [[], []]);
    const more = await explainFor('repo.create');
    assert.equal(more.allowed, true);
    assert.deepEqual(more.bindings, []);
    assert.match(more.explanation, /The token gives repo\.create/);
  });

  test('validation errors name the invalid field', async () => {
    const fields = async (request: object) =>
      (await rejects(fixture.api.call(explain, request), Code.INVALID_ARGUMENT)).fields;
    const request = { capability: 'groups.list', uid: fixture.org };
    assert.deepEqual(await fields({}), ['capability', 'uid']);
    assert.deepEqual(await fields({ ...request, capability: 'groups.fly' }), ['capability']);
    assert.deepEqual(await fields({ ...request, uid: 'x' }), ['uid']);
    assert.deepEqual(await fields({ ...request, identity: 'x' }), ['identity']);
    const error = await rejects(fixture.api.call(explain, request, {}), Code.UNAUTHENTICATED);
    assert.equal(error.detail('ErrorInfo')?.domain, 'access.wharfinger.dev');
  });
});
