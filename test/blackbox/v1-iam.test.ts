import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { newUid, parseUid } from '../../src/base/uid.ts';
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
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const VIEWER = builtinRoleUid('viewer');
const MISSING_SUFFIX = '0'.repeat(16);

let names = 0;
const newName = (): string => `v1 ${++names}`;

onEveryDatabaseAndWire('v1 of IAM', (fixture) => {
  test('a list contains all items, without pages', async () => {
    const parent = parseUid('parent', await fixture.newGroup());
    const drafts = Array.from({ length: 401 }, (_, at) => ({
      message: create(GroupSchema, { name: `many ${at}` }),
      uid: newUid(parent),
      parent,
    }));
    const store = await openStore(fixture.server.dataLocation);
    await store.write((tx) => insertAll(tx, groups, drafts, 1));
    await store.close();
    const { items } = await fixture.api.call(Groups.method.list, { uidp: { childrenOf: parent } });
    assert.deepEqual(items.map(({ id }) => id).sort(), drafts.map(({ uid }) => uid).sort());
  });

  test('a list of a missing group or one out of reach is empty', async () => {
    const [here, elsewhere] = [await fixture.newGroup(), await fixture.newGroup()];
    const { token } = await callerWithRole(fixture.server, 'viewer', here);
    const viewer = fixture.as(await token());
    for (const uid of [`${fixture.org}/${MISSING_SUFFIX}`, elsewhere]) {
      assert.deepEqual((await viewer.call(Groups.method.list, { id: uid })).items, []);
      assert.deepEqual((await viewer.call(Groups.method.list, { uidp: { descendantsOf: uid } })).items, []);
      assert.deepEqual((await viewer.call(Roles.method.list, { parent: uid })).items, []);
      assert.deepEqual((await viewer.call(RoleBindings.method.list, { uidp: { childrenOf: uid } })).items, []);
    }
    const conflict = { id: here, uidp: { ids: [elsewhere] } };
    assert.deepEqual((await fixture.api.call(Groups.method.list, conflict)).items, []);
  });

  test('an invalid uid is an error', async () => {
    const assertFields = ({ fields }: { fields: string[] }) => assert.deepEqual(fields, ['uidp.ids[0]']);
    await rejects(fixture.api.call(Groups.method.list, { id: 'my group' }), Code.INVALID_ARGUMENT, assertFields);
    await rejects(fixture.api.call(GroupsService.method.getGroup, { uid: 'my group' }), Code.INVALID_ARGUMENT);
    await rejects(fixture.api.call(Groups.method.delete, { id: 'my group' }), Code.INVALID_ARGUMENT, ({ fields }) =>
      assert.deepEqual(fields, ['id']),
    );
  });

  test('updating or deleting a missing group returns NOT_FOUND', async () => {
    const id = `${fixture.org}/${MISSING_SUFFIX}`;
    await rejects(fixture.api.call(Groups.method.update, { id, name: 'renamed' }), Code.NOT_FOUND);
    await rejects(fixture.api.call(Groups.method.delete, { id }), Code.NOT_FOUND);
  });

  test('PUT replaces all fields of v1 and keeps the others', async () => {
    const parent = await fixture.newGroup();
    const { uid } = await fixture.api.call(IdentitiesService.method.createIdentity, {
      parent,
      identity: { name: newName(), description: 'to be forgotten', company: 'acme' },
    });
    const put = await fixture.api.call(Identities.method.update, { id: uid, name: 'after' });
    assert.equal(put.description, '');
    const { name, description, company } = await fixture.api.call(IdentitiesService.method.getIdentity, { uid });
    assert.deepEqual({ name, description, company }, { name: 'after', description: '', company: 'acme' });
    await rejects(fixture.api.call(Identities.method.update, { id: uid }), Code.INVALID_ARGUMENT);
  });

  test('a group with children cannot be deleted', async () => {
    const id = await fixture.newGroup();
    await fixture.newGroup(id);
    await rejects(fixture.api.call(Groups.method.delete, { id }), Code.FAILED_PRECONDITION, (error) =>
      assert.ok(error.detail('PreconditionFailure')),
    );
  });

  test('validation errors name the fields of v1', async () => {
    const parent = await fixture.newGroup();
    const binding = fixture.api.call(RoleBindings.method.create, { parent, roleBinding: { role: VIEWER } });
    await rejects(binding, Code.INVALID_ARGUMENT, ({ fields }) => assert.deepEqual(fields, ['identity']));
    const role = { name: newName(), capabilities: ['groups.list', 'groups.fly'] };
    await rejects(fixture.api.call(Roles.method.create, { parentId: parent, role }), Code.INVALID_ARGUMENT, (error) =>
      assert.deepEqual(error.fields, ['capabilities[1]']),
    );
  });

  test('a batch of bindings succeeds or fails as a whole, and emits one event', async () => {
    const parent = await fixture.newGroup();
    const identityOf = async () =>
      (await fixture.api.call(Identities.method.create, { parentId: parent, identity: { name: newName() } })).id;
    const [one, two] = [await identityOf(), await identityOf()];
    const bad = [
      { identity: one, role: VIEWER },
      { identity: `${parent}/${MISSING_SUFFIX}`, role: VIEWER },
    ];
    await rejects(
      fixture.api.call(RoleBindings.method.createBatch, { parent, roleBindings: bad }),
      Code.INVALID_ARGUMENT,
      ({ fields }) => assert.deepEqual(fields, ['role_bindings[1].role_binding.identity']),
    );
    assert.deepEqual((await fixture.api.call(RoleBindings.method.list, { uidp: { childrenOf: parent } })).items, []);
    await rejects(fixture.api.call(RoleBindings.method.createBatch, { parent }), Code.INVALID_ARGUMENT, ({ fields }) =>
      assert.deepEqual(fields, ['role_bindings']),
    );

    const good = [one, two].map((identity) => ({ identity, role: VIEWER }));
    const { roleBindings } = await fixture.api.call(RoleBindings.method.createBatch, { parent, roleBindings: good });
    assert.deepEqual(
      roleBindings.map(({ identity, role, group }) => [identity, role, group]),
      [one, two].map((identity) => [identity, VIEWER, parent]),
    );
    const [event] = await eventsAbout(fixture.db, roleBindings.map(({ id }) => id).join(','));
    assert.equal(event?.type, 'dev.chainguard.api.iam.rolebindings.created.batch.v1');
    assert.deepEqual([event?.bodyType, event?.scope], ['chainguard.platform.iam.RoleBindingBatch', parent]);
  });

  test('a list of bindings contains their identities, roles and groups', async () => {
    const parent = await fixture.newGroup();
    const { id: identity } = await fixture.api.call(Identities.method.create, {
      parentId: parent,
      identity: { name: newName() },
    });
    await fixture.api.call(RoleBindings.method.create, { parent, roleBinding: { identity, role: VIEWER } });
    const [binding] = (await fixture.api.call(RoleBindings.method.list, { uidp: { childrenOf: parent } })).items;
    const [viewer] = (await fixture.api.call(Roles.method.list, { id: VIEWER })).items;
    assert.ok(viewer?.capabilities.includes('groups.list'));
    assert.deepEqual(binding?.role, viewer);
    assert.deepEqual([binding?.identity, binding?.group?.id], [identity, parent]);
  });

  test('events have the types of v2 and bodies of v1', async () => {
    const { id } = await fixture.api.call(Groups.method.create, { parent: fixture.org, group: { name: newName() } });
    await fixture.api.call(Groups.method.update, { id, name: newName(), description: 'changed' });
    await fixture.api.call(Groups.method.delete, { id });
    const events = await eventsAbout(fixture.db, id);
    assert.deepEqual(
      events.map(({ type, bodyType, scope }) => [type.split('.').at(-2), bodyType, scope]),
      [
        ['created', 'chainguard.platform.iam.Group', id],
        ['updated', 'chainguard.platform.iam.Group', id],
        ['deleted', 'chainguard.platform.iam.DeleteGroupRequest', fixture.org],
      ],
    );
    assert.equal(events[1]?.body?.description, 'changed');
    assert.deepEqual(events[2]?.body, { id });
  });

  test('events omit the same secrets and fields as in v2', async () => {
    const group = await fixture.newOrganization();
    const ttl = { seconds: 60n };
    const invite = await fixture.api.call(GroupInvites.method.create, { group, role: VIEWER, email: 'a@b.cd', ttl });
    assert.match(invite.code, /^\w+\.\S{43}$/);
    const [invited] = await eventsAbout(fixture.db, invite.id);
    assert.deepEqual(Object.keys(invited?.body ?? {}).sort(), ['expiration', 'id']);
    assert.equal(invited?.bodyType, 'chainguard.platform.iam.GroupInvite');
    const { groupInvites } = await fixture.api.call(GroupInvitesService.method.listGroupInvites, {
      uidp: { childrenOf: group },
    });
    assert.deepEqual([groupInvites[0]?.uid, groupInvites[0]?.email], [invite.id, 'a@b.cd']);

    const configuration = {
      case: 'oidc' as const,
      value: { issuer: 'https://login.example.com', clientId: 'c', clientSecret: 'nobody-reads-this' },
    };
    const provider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await fixture.api.call(IdentityProviders.method.create, {
      parentId: group,
      identityProvider: provider,
    });
    const scim = await fixture.api.call(IdentityProviders.method.generateScimToken, { identityProviderId: id });
    assert.match(scim.token, /^cgscim_/);
    const content = JSON.stringify(await eventsAbout(fixture.db, id));
    assert.ok(content.includes('GenerateScimTokenResponse') && !content.includes(scim.token));
    assert.ok(!content.includes('nobody-reads-this'));

    const mapping = { externalGroupId: 'staff', roleUidp: VIEWER };
    const made = await fixture.api.call(ExternalGroupRoleMappings.method.create, { parentId: id, mapping });
    await fixture.api.call(ExternalGroupRoleMappings.method.delete, { id: made.id });
    const [created, deleted] = await eventsAbout(fixture.db, made.id);
    assert.equal(created?.bodyType, 'chainguard.platform.iam.ExternalGroupRoleMapping');
    assert.deepEqual([deleted?.body, deleted?.extensions.identityprovider], [{ id: made.id }, id]);
  });

  test('SCIM tokens can be generated, regenerated, disabled and revoked', async () => {
    const parentId = await fixture.newOrganization();
    const configuration = { case: 'oidc' as const, value: { issuer: 'https://x.example.com', clientId: 'c' } };
    const provider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await fixture.api.call(IdentityProviders.method.create, { parentId, identityProvider: provider });
    const { generateScimToken, regenerateScimToken, setScimEnabled, revokeScimToken } = IdentityProviders.method;
    const first = await fixture.api.call(generateScimToken, { identityProviderId: id });
    const { etag } = first;
    const second = await fixture.api.call(regenerateScimToken, { identityProviderId: id, etag });
    assert.notEqual(second.token, first.token);
    assert.equal(second.identityProviderId, id);
    const off = await fixture.api.call(setScimEnabled, { identityProviderId: id, enabled: false, etag: second.etag });
    assert.equal(off.enabled, false);
    await fixture.api.call(revokeScimToken, { identityProviderId: id });
    await rejects(
      fixture.api.call(setScimEnabled, { identityProviderId: id, enabled: true, etag: 'stale' }),
      Code.ABORTED,
    );
  });

  test('several mappings can be deleted in a batch', async () => {
    const group = await fixture.newOrganization();
    const configuration = { case: 'oidc' as const, value: { issuer: 'https://y.example.com', clientId: 'c' } };
    const identityProvider = { name: newName(), defaultRole: VIEWER, configuration };
    const { id } = await fixture.api.call(IdentityProviders.method.create, { parentId: group, identityProvider });
    const ids: string[] = [];
    for (const externalGroupId of ['a', 'b']) {
      const mapping = { externalGroupId, roleUidp: VIEWER };
      ids.push((await fixture.api.call(ExternalGroupRoleMappings.method.create, { parentId: id, mapping })).id);
    }
    const { batchDelete, list } = ExternalGroupRoleMappings.method;
    const found = await fixture.api.call(list, { identityProviderUidp: id });
    assert.equal(found.items.length, 2);
    const deleted = await fixture.api.call(batchDelete, { parentId: id, ids });
    assert.deepEqual([deleted.parentId, deleted.items.map((item) => item.id).sort()], [id, ids.sort()]);
    assert.deepEqual((await fixture.api.call(list, { identityProviderUidp: id })).items, []);
  });

  test('terms accepted in v1 are listed in v2', async () => {
    const group = await fixture.newGroup();
    await fixture.api.call(Terms.method.acceptTerms, { group, documentIds: ['sfdpa.v1'] });
    const { items } = await fixture.api.call(Terms.method.listAccepted, { group });
    const { termsAcceptances } = await fixture.api.call(TermsService.method.listTermsAcceptances, { group });
    assert.deepEqual(
      items.map(({ docId, acceptedBy, acceptedAt }) => [docId, acceptedBy, acceptedAt]),
      termsAcceptances.map(({ docId, acceptedBy, createTime }) => [docId, acceptedBy, createTime]),
    );
    assert.equal(items[0]?.docId, 'sfdpa.v1');
  });

  test('an account association can be checked', async () => {
    const group = await fixture.newGroup();
    const { create: associate, check } = GroupAccountAssociations.method;
    await fixture.api.call(associate, {
      group,
      name: newName(),
      google: { projectId: 'my-project-1', projectNumber: '123456789' },
    });
    const checked = await fixture.api.call(check, { group, accountType: AccountType.GOOGLE });
    assert.equal(checked.ready, State.NotReady);
    await rejects(fixture.api.call(check, { group, accountType: AccountType.UNKNOWN }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['account_type']),
    );
  });

  test('the metadata of the caller can be set, and its event has no subject', async () => {
    const onboardingQuestions = { companyName: 'acme', product: 'wharf', selfServe: true };
    const content = await fixture.api.call(EventIdentities.method.updateMetadata, { onboardingQuestions });
    const { companyName, product, selfServe } = content.onboardingQuestions ?? assert.fail();
    assert.deepEqual({ companyName, product, selfServe }, onboardingQuestions);
    const events = await eventsAbout(fixture.db, '');
    assert.equal(events.at(-1)?.bodyType, 'chainguard.platform.iam.v2.IdentityMetadata');
  });

  test('ping, eligibility, lookups and access requests are served', async () => {
    assert.equal((await fixture.api.call(PingService.method.ping)).response, 'pong');
    assert.equal((await fixture.api.call(Groups.method.checkEligibility)).eligible, true);
    await rejects(fixture.api.call(Groups.method.lookupGroup), Code.NOT_FOUND);
    const person = { issuer: 'https://issuer.example.com', subject: 'somebody' };
    const { id } = await fixture.api.call(Identities.method.lookup, person);
    assert.equal((await fixture.api.call(IdentitiesService.method.lookupIdentity, person)).uid, id);
    await rejects(fixture.api.call(Groups.method.requestGroupAccess, { groupId: 'x' }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['group_id']),
    );
  });
});
