import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../../src/access/caller.ts';
import { Code } from '../../src/base/errors.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { AccessService, type ExplainResponse } from '../../src/contract/gen/wharfinger/access/v1/access_pb.js';
import { explainOperations } from '../../src/domains/iam/access/explain.ts';
import type { ReadContext } from '../../src/resource/operation.ts';
import { builtinUid, callerWith, person, stranger } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';

const { explain } = AccessService.method;
const { createRoleBinding, deleteRoleBinding } = RoleBindingsService.method;
const { createRole } = RolesService.method;

everywhere('explain', (bench) => {
  const bind = (identityUid: string, roleUid: string, parent: string) =>
    bench.api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid } });

  test('names the binding that allows, here or above', async () => {
    const top = await bench.newGroup();
    const inner = await bench.newGroup(top);
    const viewer = await callerWith(bench.server, 'viewer', top);
    const api = bench.as(await viewer.token());
    const answer = await api.call(explain, { capability: 'groups.list', uid: inner });
    assert.equal(answer.identity, viewer.uid);
    assert.equal(answer.allowed, true);
    assert.match(answer.explanation, new RegExp(`${top} gives groups\\.list on ${inner}`));
    const [binding, ...more] = answer.bindings;
    assert.deepEqual(more, []);
    assert.equal(binding?.groupUid, top);
    assert.equal(binding?.roleUid, builtinUid('viewer'));
    assert.equal(binding?.roleName, 'viewer');
    assert.deepEqual([answer.groups, answer.roles], [[], []]);

    // A second one, from a role of the organization's own, counts as well; the outermost comes first.
    const role = { name: 'only groups', capabilities: [Capability.CAP_IAM_GROUPS_LIST] };
    const { uid: own } = await bench.api.call(createRole, { parent: top, role });
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

    // What is gone no longer counts.
    await bench.api.call(deleteRoleBinding, { uid: second.uid });
    await bench.api.call(deleteRoleBinding, { uid: binding?.uid ?? '' });
    assert.equal((await api.call(explain, { capability: 'groups.list', uid: inner })).allowed, false);
  });

  test('says what would help', async () => {
    const top = await bench.newGroup();
    const inner = await bench.newGroup(top);
    const viewer = await callerWith(bench.server, 'viewer', top);
    const api = bench.as(await viewer.token());
    const answer = await api.call(explain, { capability: 'repo.create', uid: `${inner}/0123456789abcdef` });
    assert.equal(answer.allowed, false);
    assert.deepEqual(answer.bindings, []);
    assert.deepEqual(answer.groups, [inner, top]);
    assert.deepEqual(
      answer.roles.map(({ name }) => name),
      ['owner', 'limited_owner', 'editor', 'registry.push', 'operator'],
    );
    assert.equal(answer.roles[0]?.uid, builtinUid('owner'));
    assert.match(answer.explanation, /No role binding gives repo\.create/);

    const unheld = await api.call(explain, { capability: 'skills.write', uid: inner });
    assert.deepEqual(unheld.roles, []);
    assert.match(unheld.explanation, /no built-in role holds it/);
  });

  test('an identity inside a group never reaches out of it, and is told so', async () => {
    const [home, other] = [await bench.newGroup(), await bench.newGroup()];
    const machine = await callerWith(bench.server, 'owner', home);
    const api = bench.as(await machine.token());
    for (const uid of [other, bench.org]) {
      const answer = await api.call(explain, { capability: 'groups.list', uid });
      assert.equal(answer.allowed, false);
      assert.deepEqual(answer.groups, []);
      assert.match(answer.explanation, new RegExp(`belongs to ${home} and has no access outside of it`));
    }
    const below = await stranger(bench.server, await bench.newGroup(home));
    const about = await api.call(explain, { capability: 'groups.list', uid: home, identity: below.uid });
    assert.equal(about.allowed, false);
    assert.deepEqual(about.groups, []);
  });

  test('a person can be helped anywhere, and learns nothing of what exists', async () => {
    const alice = await person(bench.server, 'https://login.example.com');
    const api = bench.as(await alice.token());
    const group = await bench.newGroup();
    for (const uid of [group, `${bench.org}/${'0'.repeat(16)}`]) {
      const answer = await api.call(explain, { capability: 'groups.list', uid });
      assert.equal(answer.allowed, false);
      assert.deepEqual(answer.groups, [uid, bench.org]);
    }
  });

  test('asking about somebody else takes the right to read role bindings there', async () => {
    const top = await bench.newGroup();
    const inner = await bench.newGroup(top);
    const editor = await callerWith(bench.server, 'editor', top);
    const viewer = await callerWith(bench.server, 'viewer', inner);
    const puller = await callerWith(bench.server, 'registry.pull', inner);
    const question = { capability: 'repo.create', uid: inner, identity: editor.uid };

    const seenByOwner = await bench.api.call(explain, question);
    assert.equal(seenByOwner.allowed, true);
    assert.equal(seenByOwner.bindings[0]?.roleName, 'editor');

    // The viewer may know who reaches the inner group, but not what is bound further up.
    const seenByViewer = await bench.as(await viewer.token()).call(explain, question);
    assert.equal(seenByViewer.allowed, true);
    assert.deepEqual(
      seenByViewer.bindings.map(({ uid, groupUid, roleUid, roleName }) => ({ uid, groupUid, roleUid, roleName })),
      [{ uid: '', groupUid: top, roleUid: '', roleName: '' }],
    );
    const error = await rejects(bench.as(await puller.token()).call(explain, question), Code.PERMISSION_DENIED);
    assert.match(error.message, /role_bindings\.list/);
    await bench.as(await puller.token()).call(explain, { ...question, identity: puller.uid });

    const nobody = await bench.api.call(explain, { ...question, identity: `${inner}/0123456789abcdef` });
    assert.equal(nobody.allowed, false);
  });

  test('a token can be worth less than the bindings, or more', async () => {
    const group = await bench.newGroup();
    const { uid: identity } = await callerWith(bench.server, 'viewer', group);
    const capabilities = capabilitySetOf([Capability.CAP_REPO_CREATE]);
    // As a token narrowed by the exchange, or one that an identity provider put groups into, makes the caller.
    const caller = createCaller(identity, undefined, [{ group, capabilities }]);
    const ask = async (capability: string) => {
      const operation = explainOperations[`${AccessService.typeName}/${explain.name}`];
      assert.ok(operation?.mode === 'read');
      const request = create(explain.input, { capability, uid: group });
      return (await operation.run({ db: bench.db, caller } as ReadContext, request)) as ExplainResponse;
    };
    const less = await ask('groups.list');
    assert.equal(less.allowed, false);
    assert.equal(less.bindings[0]?.roleName, 'viewer');
    assert.match(less.explanation, /this token is restricted to less/);
    assert.deepEqual([less.groups, less.roles], [[], []]);
    const more = await ask('repo.create');
    assert.equal(more.allowed, true);
    assert.deepEqual(more.bindings, []);
    assert.match(more.explanation, /The token gives repo\.create/);
  });

  test('says which field is wrong', async () => {
    const fields = async (request: object) =>
      (await rejects(bench.api.call(explain, request), Code.INVALID_ARGUMENT)).fields;
    const question = { capability: 'groups.list', uid: bench.org };
    assert.deepEqual(await fields({}), ['capability', 'uid']);
    assert.deepEqual(await fields({ ...question, capability: 'groups.fly' }), ['capability']);
    assert.deepEqual(await fields({ ...question, uid: 'x' }), ['uid']);
    assert.deepEqual(await fields({ ...question, identity: 'x' }), ['identity']);
    const error = await rejects(bench.api.call(explain, question, {}), Code.UNAUTHENTICATED);
    assert.equal(error.detail('ErrorInfo')?.domain, 'access.wharfinger.dev');
  });
});
