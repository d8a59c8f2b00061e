import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import {
  AccountAssociationsService,
  AccountProviderType,
  CheckStatus,
} from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { createAccountAssociation, getAccountAssociation, listAccountAssociations } = AccountAssociationsService.method;
const { updateAccountAssociation, deleteAccountAssociation, checkAccountAssociation } =
  AccountAssociationsService.method;
const { deleteGroup } = GroupsService.method;

const UUID = '6f1d6c2e-0f5a-4c6e-9d5b-3a1f0c9b7e11';

onEveryDatabaseAndWire('account associations', (fixture) => {
  const associate = (parent: string, accountAssociation: object) =>
    fixture.api.call(createAccountAssociation, { parent, accountAssociation });

  test('an account association has the uid of its group', async () => {
    const group = await fixture.newGroup();
    const made = await associate(group, {
      uid: 'ignored',
      name: 'clouds',
      description: 'ours',
      amazon: { account: '123456789012' },
      google: { projectId: 'my-project-1', projectNumber: '123456' },
      azure: { tenantId: UUID, clientIds: { INGESTER: UUID } },
      github: { appInstallations: { 7: { installations: [{ installationId: 9n, name: 'acme' }] } } },
      chainguard: { serviceBindings: { INGESTER: `${group}/0123456789abcdef` } },
    });
    assert.equal(made.uid, group);
    assert.ok(made.createTime && made.updateTime);
    assert.equal(made.github?.appInstallations['7']?.installations[0]?.installationId, 9n);
    assert.deepEqual(await fixture.api.call(getAccountAssociation, { uid: group }), made);

    const changed = await fixture.api.call(updateAccountAssociation, {
      accountAssociation: { uid: group, name: 'fewer', amazon: { account: '210987654321' } },
      updateMask: { paths: ['amazon', 'google', 'azure', 'github', 'chainguard'] },
    });
    assert.equal(changed.name, 'clouds');
    assert.equal(changed.amazon?.account, '210987654321');
    assert.equal(changed.google, undefined);
    assert.equal(changed.uid, group);
    assert.deepEqual(await fixture.api.call(getAccountAssociation, { uid: group }), changed);
  });

  test('a group has at most one association, even when several are created concurrently', async () => {
    const group = await fixture.newGroup();
    const attempts = await Promise.allSettled(['one', 'two', 'three'].map((name) => associate(group, { name })));
    assert.equal(attempts.filter(({ status }) => status === 'fulfilled').length, 1);
    const error = await rejects(associate(group, { name: 'four' }), Code.ALREADY_EXISTS);
    assert.equal(error.detail('ResourceInfo')?.resourceName, group);
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') assert.equal(attempt.reason.code, Code.ALREADY_EXISTS);
    }
  });

  test('associations are filtered by hierarchy and name, within the reach of the caller', async () => {
    const top = await fixture.newGroup();
    const [a, b] = [await fixture.newGroup(top), await fixture.newGroup(top)];
    const sorted = [a, b].sort();
    for (const [at, uid] of sorted.entries()) await associate(uid, { name: `list ${2 - at}` });
    await associate(top, { name: 'top of list' });
    const list = async (request: object) => {
      const page = await fixture.api.call(listAccountAssociations, request);
      assert.equal(page.totalCount, BigInt(page.accountAssociations.length));
      return page.accountAssociations.map(({ uid }) => uid);
    };
    assert.deepEqual(await list({ uidp: { descendantsOf: top } }), [top, ...sorted]);
    assert.deepEqual(await list({ uidp: { childrenOf: top } }), [top]);
    assert.deepEqual(await list({ uidp: { ids: [a, b] } }), sorted);
    assert.deepEqual(await list({ uidp: { descendantsOf: top }, orderBy: 'name' }), [...sorted].reverse().concat(top));
    assert.deepEqual(await list({ uidp: { descendantsOf: top }, name: 'list 1' }), [sorted[1]]);
    assert.deepEqual(await list({ uidp: { descendantsOf: top }, name: 'list' }), []);

    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', a)).token());
    const { accountAssociations } = await viewer.call(listAccountAssociations, {});
    assert.deepEqual(
      accountAssociations.map(({ uid }) => uid),
      [a],
    );
    await rejects(viewer.call(getAccountAssociation, { uid: b }), Code.PERMISSION_DENIED);
    await rejects(
      viewer.call(updateAccountAssociation, { accountAssociation: { uid: a, name: 'mine' } }),
      Code.PERMISSION_DENIED,
    );
  });

  test('a group with an association cannot be deleted, and deleting the association twice succeeds', async () => {
    const group = await fixture.newGroup();
    await associate(group, { name: 'in the way' });
    const error = await rejects(fixture.api.call(deleteGroup, { uid: group }), Code.FAILED_PRECONDITION);
    assert.equal(error.message, 'Precondition failed: cannot delete group with child account associations');
    await fixture.api.call(deleteAccountAssociation, { uid: group });
    await fixture.api.call(deleteAccountAssociation, { uid: group });
    await rejects(fixture.api.call(getAccountAssociation, { uid: group }), Code.NOT_FOUND);
    await associate(group, { name: 'again' });
    await fixture.api.call(deleteAccountAssociation, { uid: group });
    await fixture.api.call(deleteGroup, { uid: group });
  });

  test('each change emits one event', async () => {
    const group = await fixture.newGroup();
    await associate(group, { name: 'watched' });
    await fixture.api.call(updateAccountAssociation, { accountAssociation: { uid: group, description: 'new' } });
    await fixture.api.call(deleteAccountAssociation, { uid: group });
    await fixture.api.call(deleteAccountAssociation, { uid: group });
    const events = (await eventsAbout(fixture.db, group)).filter(({ type }) => type.includes('account_associations'));
    assert.deepEqual(
      events.map(({ type, scope, extensions, bodyType }) => ({ type, scope, extensions, bodyType })),
      ['created', 'updated', 'deleted'].map((change) => ({
        type: `dev.chainguard.api.iam.account_associations.${change}.v1`,
        scope: group,
        extensions: { group },
        bodyType: `chainguard.platform.iam.${change === 'deleted' ? 'DeleteAccountAssociationsRequest' : 'AccountAssociations'}`,
      })),
    );
    assert.equal(events[0]?.body?.name, 'watched');
    assert.deepEqual(events[2]?.body, { group });
  });

  test('validation errors name the invalid field', async () => {
    const group = await fixture.newGroup();
    const bad = async (association: object, ...fields: string[]) => {
      const error = await rejects(associate(group, { name: 'fine', ...association }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, fields);
    };
    await bad({ name: '' }, 'name');
    await bad({ name: 'No' }, 'name');
    await bad({ description: 'two\nlines' }, 'description');
    await bad({ amazon: {} }, 'amazon.account');
    await bad({ amazon: { account: '12345678901x' } }, 'amazon.account');
    await bad({ google: {} }, 'google.project_id', 'google.project_number');
    await bad({ google: { projectId: 'a'.repeat(4097), projectNumber: '1' } }, 'google.project_id');
    await bad({ google: { projectId: 'a', projectNumber: '1'.repeat(4097) } }, 'google.project_number');
    await bad({ azure: {} }, 'azure.tenant_id', 'azure.client_ids');
    await bad({ azure: { tenantId: 'tenant', clientIds: { a: UUID } } }, 'azure.tenant_id');
    await bad({ azure: { tenantId: UUID, clientIds: { a: 'no uuid' } } }, 'azure.client_ids');
    await bad({ azure: { tenantId: UUID, clientIds: { 'a b': UUID } } }, 'azure.client_ids');
    await bad({ chainguard: {} }, 'chainguard.service_bindings');
    await bad({ chainguard: { serviceBindings: { INGESTER: 'nobody' } } }, 'chainguard.service_bindings');
    await bad({ github: { appInstallations: { 1: { installations: [{}] } } } }, 'github.app_installations');
    await bad({ github: { appInstallations: { '-1': {} } } }, 'github.app_installations');
    await rejects(associate(`${group}/${'0'.repeat(16)}`, { name: 'lost' }), Code.NOT_FOUND);
    await rejects(
      fixture.api.call(updateAccountAssociation, { accountAssociation: { uid: group, name: 'lost' } }),
      Code.NOT_FOUND,
    );
  });

  test('a check returns the reason why an association is not ready', async () => {
    const group = await fixture.newGroup();
    const check = (providerType: AccountProviderType) =>
      fixture.api.call(checkAccountAssociation, { uid: group, providerType });
    await rejects(check(AccountProviderType.AMAZON), Code.NOT_FOUND);
    await associate(group, { name: 'half', amazon: { account: '123456789012' } });
    const amazon = await check(AccountProviderType.AMAZON);
    assert.equal(amazon.status, CheckStatus.NOT_READY);
    assert.equal(amazon.reason, 'PROVIDER_NOT_REACHABLE');
    assert.match(amazon.message, /AWS/);
    const azure = await check(AccountProviderType.AZURE);
    assert.equal(azure.status, CheckStatus.NOT_READY);
    assert.equal(azure.reason, 'NOT_CONFIGURED');
    for (const none of [AccountProviderType.UNSPECIFIED, 99 as AccountProviderType]) {
      assert.deepEqual((await rejects(check(none), Code.INVALID_ARGUMENT)).fields, ['provider_type']);
    }
  });
});
