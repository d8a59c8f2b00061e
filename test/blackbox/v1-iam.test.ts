import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { newUid } from '../../src/base/uid.ts';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema, GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { Identities as EventIdentities } from '../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import {
  AccountAssociationsCheckRequest_AccountType as AccountType,
  GroupAccountAssociations,
  AccountAssociationsStatus_State as State,
} from '../../src/contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import { ExternalGroupRoleMappings } from '../../src/contract/gen/platform/iam/v1/external_group_role_mappings.platform_pb.js';
import { Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { GroupInvites } from '../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { Identities } from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { IdentityProviders } from '../../src/contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import { Roles } from '../../src/contract/gen/platform/iam/v1/role.platform_pb.js';
import { RoleBindings } from '../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { Terms } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { PingService } from '../../src/contract/gen/platform/ping/v1/ping.platform_pb.js';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { insertAll } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { builtinUid, callerWith } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const VIEWER = builtinUid('viewer');
const NOT_THERE = '0'.repeat(16);

let names = 0;
const newName = (): string => `v1 ${++names}`;

everywhere('v1 of IAM', (bench) => {
  test('a list has everything, however many there are', async () => {
    const parent = await bench.newGroup();
    const drafts = Array.from({ length: 401 }, (_, at) => ({
      message: create(GroupSchema, { name: `many ${at}` }),
      uid: newUid(parent),
      parent,
    }));
    const store = await openStore(bench.server.home);
    await store.write((tx) => insertAll(tx, groups, drafts, 1));
    await store.close();
    const { items } = await bench.api.call(Groups.method.list, { uidp: { childrenOf: parent } });
    assert.deepEqual(items.map(({ id }) => id).sort(), drafts.map(({ uid }) => uid).sort());
  });

  test('what is not there, or out of reach, is an empty list', async () => {
    const [here, elsewhere] = [await bench.newGroup(), await bench.newGroup()];
    const { token } = await callerWith(bench.server, 'viewer', here);
    const viewer = bench.as(await token());
    for (const uid of [`${bench.org}/${NOT_THERE}`, elsewhere]) {
      assert.deepEqual((await viewer.call(Groups.method.list, { id: uid })).items, []);
      assert.deepEqual((await viewer.call(Groups.method.list, { uidp: { descendantsOf: uid } })).items, []);
      assert.deepEqual((await viewer.call(Roles.method.list, { parent: uid })).items, []);
      assert.deepEqual((await viewer.call(RoleBindings.method.list, { uidp: { childrenOf: uid } })).items, []);
    }
    const conflict = { id: here, uidp: { ids: [elsewhere] } };
    assert.deepEqual((await bench.api.call(Groups.method.list, conflict)).items, []);
  });

  test('a uid that is none is an error', async () => {
    const look = ({ fields }: { fields: string[] }) => assert.deepEqual(fields, ['uidp.ids[0]']);
    await rejects(bench.api.call(Groups.method.list, { id: 'my group' }), Code.INVALID_ARGUMENT, look);
    await rejects(bench.api.call(GroupsService.method.getGroup, { uid: 'my group' }), Code.INVALID_ARGUMENT);
    await rejects(bench.api.call(Groups.method.delete, { id: 'my group' }), Code.INVALID_ARGUMENT, ({ fields }) =>
      assert.deepEqual(fields, ['id']),
    );
  });

  test('what is missing is not found when it is changed or deleted', async () => {
    const id = `${bench.org}/${NOT_THERE}`;
    await rejects(bench.api.call(Groups.method.update, { id, name: 'renamed' }), Code.NOT_FOUND);
    await rejects(bench.api.call(Groups.method.delete, { id }), Code.NOT_FOUND);
  });

  test('PUT replaces all that v1 knows of, and leaves the rest alone', async () => {
    const parent = await bench.newGroup();
    const { uid } = await bench.api.call(IdentitiesService.method.createIdentity, {
      parent,
      identity: { name: newName(), description: 'to be forgotten', company: 'acme' },
    });
    const put = await bench.api.call(Identities.method.update, { id: uid, name: 'after' });
    assert.equal(put.description, '');
    const { name, description, company } = await bench.api.call(IdentitiesService.method.getIdentity, { uid });
    assert.deepEqual({ name, description, company }, { name: 'after', description: '', company: 'acme' });
    await rejects(bench.api.call(Identities.method.update, { id: uid }), Code.INVALID_ARGUMENT);
  });

  test('a group with children stays, and says why', async () => {
    const id = await bench.newGroup();
    await bench.newGroup(id);
    await rejects(bench.api.call(Groups.method.delete, { id }), Code.FAILED_PRECONDITION, (error) =>
      assert.ok(error.detail('PreconditionFailure')),
    );
  });

  test('complaints name the fields of v1', async () => {
    const parent = await bench.newGroup();
    const binding = bench.api.call(RoleBindings.method.create, { parent, roleBinding: { role: VIEWER } });
    await rejects(binding, Code.INVALID_ARGUMENT, ({ fields }) => assert.deepEqual(fields, ['identity']));
    const role = { name: newName(), capabilities: ['groups.list', 'groups.fly'] };
    await rejects(bench.api.call(Roles.method.create, { parentId: parent, role }), Code.INVALID_ARGUMENT, (error) =>
      assert.deepEqual(error.fields, ['capabilities[1]']),
    );
  });

  test('a batch of bindings is all or nothing, and one event', async () => {
    const parent = await bench.newGroup();
    const identityOf = async () =>
      (await bench.api.call(Identities.method.create, { parentId: parent, identity: { name: newName() } })).id;
    const [one, two] = [await identityOf(), await identityOf()];
    const bad = [
      { identity: one, role: VIEWER },
      { identity: `${parent}/${NOT_THERE}`, role: VIEWER },
    ];
    await rejects(
      bench.api.call(RoleBindings.method.createBatch, { parent, roleBindings: bad }),
      Code.INVALID_ARGUMENT,
      ({ fields }) => assert.deepEqual(fields, ['role_bindings[1].role_binding.identity']),
    );
    assert.deepEqual((await bench.api.call(RoleBindings.method.list, { uidp: { childrenOf: parent } })).items, []);
    await rejects(bench.api.call(RoleBindings.method.createBatch, { parent }), Code.INVALID_ARGUMENT, ({ fields }) =>
      assert.deepEqual(fields, ['role_bindings']),
    );

    const good = [one, two].map((identity) => ({ identity, role: VIEWER }));
    const { roleBindings } = await bench.api.call(RoleBindings.method.createBatch, { parent, roleBindings: good });
    assert.deepEqual(
      roleBindings.map(({ identity, role, group }) => [identity, role, group]),
      [one, two].map((identity) => [identity, VIEWER, parent]),
    );
    const [event] = await eventsAbout(bench.db, roleBindings.map(({ id }) => id).join(','));
    assert.equal(event?.type, 'dev.chainguard.api.iam.rolebindings.created.batch.v1');
    assert.deepEqual([event?.bodyType, event?.scope], ['chainguard.platform.iam.RoleBindingBatch', parent]);
  });

  test('a list of bindings shows what they bind', async () => {
    const parent = await bench.newGroup();
    const { id: identity } = await bench.api.call(Identities.method.create, {
      parentId: parent,
      identity: { name: newName() },
    });
    await bench.api.call(RoleBindings.method.create, { parent, roleBinding: { identity, role: VIEWER } });
    const [binding] = (await bench.api.call(RoleBindings.method.list, { uidp: { childrenOf: parent } })).items;
    const [viewer] = (await bench.api.call(Roles.method.list, { id: VIEWER })).items;
    assert.ok(viewer?.capabilities.includes('groups.list'));
    assert.deepEqual(binding?.role, viewer);
    assert.deepEqual([binding?.identity, binding?.group?.id], [identity, parent]);
  });

  test('events are those of v2 with bodies of v1', async () => {
    const { id } = await bench.api.call(Groups.method.create, { parent: bench.org, group: { name: newName() } });
    await bench.api.call(Groups.method.update, { id, name: newName(), description: 'changed' });
    await bench.api.call(Groups.method.delete, { id });
    const events = await eventsAbout(bench.db, id);
    assert.deepEqual(
      events.map(({ type, bodyType, scope }) => [type.split('.').at(-2), bodyType, scope]),
      [
        ['created', 'chainguard.platform.iam.Group', id],
        ['updated', 'chainguard.platform.iam.Group', id],
        ['deleted', 'chainguard.platform.iam.DeleteGroupRequest', bench.org],
      ],
    );
    assert.equal(events[1]?.body?.description, 'changed');
    assert.deepEqual(events[2]?.body, { id });
  });

  test('no event tells what v2 would keep to itself', async () => {
    const group = await bench.newGroup();
    const ttl = { seconds: 60n };
    const invite = await bench.api.call(GroupInvites.method.create, { group, role: VIEWER, email: 'a@b.cd', ttl });
    assert.match(invite.code, /^\w+\.\S{43}$/);
    const [invited] = await eventsAbout(bench.db, invite.id);
    assert.deepEqual(Object.keys(invited?.body ?? {}).sort(), ['expiration', 'id']);
    assert.equal(invited?.bodyType, 'chainguard.platform.iam.GroupInvite');
    const { groupInvites } = await bench.api.call(GroupInvitesService.method.listGroupInvites, {
      uidp: { childrenOf: group },
    });
    assert.deepEqual([groupInvites[0]?.uid, groupInvites[0]?.email], [invite.id, 'a@b.cd']);

    const configuration = {
      case: 'oidc' as const,
      value: { issuer: 'https://login.example.com', clientId: 'c', clientSecret: 'nobody-reads-this' },
    };
    const provider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await bench.api.call(IdentityProviders.method.create, {
      parentId: group,
      identityProvider: provider,
    });
    const scim = await bench.api.call(IdentityProviders.method.generateScimToken, { identityProviderId: id });
    assert.match(scim.token, /^cgscim_/);
    const told = JSON.stringify(await eventsAbout(bench.db, id));
    assert.ok(told.includes('GenerateScimTokenResponse') && !told.includes(scim.token));
    assert.ok(!told.includes('nobody-reads-this'));

    const mapping = { externalGroupId: 'staff', roleUidp: VIEWER };
    const made = await bench.api.call(ExternalGroupRoleMappings.method.create, { parentId: id, mapping });
    await bench.api.call(ExternalGroupRoleMappings.method.delete, { id: made.id });
    const [created, deleted] = await eventsAbout(bench.db, made.id);
    assert.equal(created?.bodyType, 'chainguard.platform.iam.ExternalGroupRoleMapping');
    assert.deepEqual([deleted?.bodyType, deleted?.extensions.identityprovider], [null, id]);
  });

  test('SCIM tokens are made, renewed and ended', async () => {
    const parentId = await bench.newGroup();
    const configuration = { case: 'oidc' as const, value: { issuer: 'https://x.example.com', clientId: 'c' } };
    const provider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await bench.api.call(IdentityProviders.method.create, { parentId, identityProvider: provider });
    const { generateScimToken, regenerateScimToken, setScimEnabled, revokeScimToken } = IdentityProviders.method;
    const first = await bench.api.call(generateScimToken, { identityProviderId: id });
    const { etag } = first;
    const second = await bench.api.call(regenerateScimToken, { identityProviderId: id, etag });
    assert.notEqual(second.token, first.token);
    assert.equal(second.identityProviderId, id);
    const off = await bench.api.call(setScimEnabled, { identityProviderId: id, enabled: false, etag: second.etag });
    assert.equal(off.enabled, false);
    await bench.api.call(revokeScimToken, { identityProviderId: id });
    await rejects(
      bench.api.call(setScimEnabled, { identityProviderId: id, enabled: true, etag: 'stale' }),
      Code.ABORTED,
    );
  });

  test('several mappings go at once', async () => {
    const group = await bench.newGroup();
    const configuration = { case: 'oidc' as const, value: { issuer: 'https://y.example.com', clientId: 'c' } };
    const identityProvider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await bench.api.call(IdentityProviders.method.create, { parentId: group, identityProvider });
    const ids: string[] = [];
    for (const externalGroupId of ['a', 'b']) {
      const mapping = { externalGroupId, roleUidp: VIEWER };
      ids.push((await bench.api.call(ExternalGroupRoleMappings.method.create, { parentId: id, mapping })).id);
    }
    const { batchDelete, list } = ExternalGroupRoleMappings.method;
    const found = await bench.api.call(list, { identityProviderUidp: id });
    assert.equal(found.items.length, 2);
    const gone = await bench.api.call(batchDelete, { parentId: id, ids });
    assert.deepEqual([gone.parentId, gone.items.map((item) => item.id).sort()], [id, ids.sort()]);
    assert.deepEqual((await bench.api.call(list, { identityProviderUidp: id })).items, []);
  });

  test('terms accepted through v1 are accepted', async () => {
    const group = await bench.newGroup();
    await bench.api.call(Terms.method.acceptTerms, { group, documentIds: ['sfdpa.v1'] });
    const { items } = await bench.api.call(Terms.method.listAccepted, { group });
    const { termsAcceptances } = await bench.api.call(TermsService.method.listTermsAcceptances, { group });
    assert.deepEqual(
      items.map(({ docId, acceptedBy, acceptedAt }) => [docId, acceptedBy, acceptedAt]),
      termsAcceptances.map(({ docId, acceptedBy, createTime }) => [docId, acceptedBy, createTime]),
    );
    assert.equal(items[0]?.docId, 'sfdpa.v1');
  });

  test('an account is checked', async () => {
    const group = await bench.newGroup();
    const { create: associate, check } = GroupAccountAssociations.method;
    await bench.api.call(associate, {
      group,
      name: newName(),
      google: { projectId: 'my-project-1', projectNumber: '123456789' },
    });
    const checked = await bench.api.call(check, { group, accountType: AccountType.GOOGLE });
    assert.equal(checked.ready, State.NotReady);
    await rejects(bench.api.call(check, { group, accountType: AccountType.UNKNOWN }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['account_type']),
    );
  });

  test('a person tells about themselves, and nobody else is told who', async () => {
    const onboardingQuestions = { companyName: 'acme', product: 'wharf', selfServe: true };
    const told = await bench.api.call(EventIdentities.method.updateMetadata, { onboardingQuestions });
    const { companyName, product, selfServe } = told.onboardingQuestions ?? assert.fail();
    assert.deepEqual({ companyName, product, selfServe }, onboardingQuestions);
    const events = await eventsAbout(bench.db, '');
    assert.equal(events.at(-1)?.bodyType, 'chainguard.platform.events.IdentityMetadata');
  });

  test('the small questions are answered', async () => {
    assert.equal((await bench.api.call(PingService.method.ping)).response, 'pong');
    assert.equal((await bench.api.call(Groups.method.checkEligibility)).eligible, true);
    await rejects(bench.api.call(Groups.method.lookupGroup), Code.NOT_FOUND);
    const who = { issuer: 'https://issuer.example.com', subject: 'somebody' };
    const { id } = await bench.api.call(Identities.method.lookup, who);
    assert.equal((await bench.api.call(IdentitiesService.method.lookupIdentity, who)).uid, id);
    await rejects(bench.api.call(Groups.method.requestGroupAccess, { groupId: 'x' }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['group_id']),
    );
  });
});
