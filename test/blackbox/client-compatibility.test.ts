import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { AccountAssociationsService } from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { CatalogTier, ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { GroupAccountAssociations } from '../../src/contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import { Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { Identities } from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { RoleBindings } from '../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { Registry, CatalogTier as V1Tier } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { v2beta1Id } from '../../src/contract/v2beta1.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { rejects } from '../support/rejects.ts';

let names = 0;
const newName = (): string => `client ${++names}`;

/** Decodes the claims of a token like a Go client, which needs integers. */
const claimsOf = (token: string): { exp?: unknown } =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/** Behaviour that existing clients depend on. wait-for-ready.test.ts tests that they survive a restart. */
onEveryDatabaseAndWire('known clients', (fixture) => {
  /** Logs in like a program. */
  async function login() {
    const aud = [fixture.server.url];
    const { token, refreshToken } = await fixture.api.call(SecurityTokenService.method.exchange, { aud });
    const refresh = async () => {
      const options = { token: refreshToken };
      const pair = await fixture.api.call(SecurityTokenService.method.exchangeRefreshToken, { aud }, options);
      return { token: pair.token?.token ?? '', refreshToken: pair.refreshToken?.token ?? '' };
    };
    return { token, refreshToken, refresh };
  }

  test('UpdateIdentity returns the create time', async () => {
    const parentId = await fixture.newGroup();
    const made = await fixture.api.call(Identities.method.create, { parentId, identity: { name: newName() } });
    assert.ok(made.createdAt);
    const changed = await fixture.api.call(Identities.method.update, { id: made.id, name: newName() });
    assert.deepEqual(changed.createdAt, made.createdAt);

    const identity = { uid: made.id, name: newName() };
    const { updateIdentity } = IdentitiesService.method;
    const beta = v2beta1Id(`${IdentitiesService.typeName}/${updateIdentity.name}`) ?? assert.fail();
    for (const id of [{}, { id: beta }]) {
      const request = { identity, updateMask: { paths: ['*'] } };
      const { createTime } = await fixture.api.call(updateIdentity, request, { token: fixture.server.token, ...id });
      assert.deepEqual(createTime, made.createdAt);
    }
  });

  test('UpdateRepo returns the catalog tier', async () => {
    const repo = { name: 'tiered', catalogTier: V1Tier.APPLICATION };
    const { id } = await fixture.api.call(Registry.method.createRepo, { parentId: await fixture.newGroup(), repo });
    const put = await fixture.api.call(Registry.method.updateRepo, { id, name: 'tiered', catalogTier: V1Tier.FIPS });
    assert.equal(put.catalogTier, V1Tier.FIPS);
    const { updateRepo } = ReposService.method;
    const patched = await fixture.api.call(updateRepo, { repo: { uid: id, description: 'changed' } });
    assert.equal(patched.catalogTier, CatalogTier.FIPS);
  });

  test('an update with the mask * replaces all fields', async () => {
    const parent = await fixture.newGroup();
    const group = { name: newName(), description: 'to be forgotten' };
    const { uid } = await fixture.api.call(GroupsService.method.createGroup, { parent, group });
    const name = newName();
    const replaced = await fixture.api.call(GroupsService.method.updateGroup, {
      group: { uid, name },
      updateMask: { paths: ['*'] },
    });
    assert.deepEqual([replaced.name, replaced.description], [name, '']);
    assert.deepEqual(await fixture.api.call(GroupsService.method.getGroup, { uid }), replaced);
  });

  test('the uid of an account association is that of its group', async () => {
    const amazon = { account: '123456789012' };
    const [one, two] = [await fixture.newGroup(), await fixture.newGroup()];
    const inV1 = await fixture.api.call(GroupAccountAssociations.method.create, {
      group: one,
      name: newName(),
      amazon,
    });
    assert.equal(inV1.group, one);
    const { createAccountAssociation, getAccountAssociation } = AccountAssociationsService.method;
    assert.equal((await fixture.api.call(getAccountAssociation, { uid: one })).uid, one);
    const accountAssociation = { name: newName(), amazon };
    const inV2 = await fixture.api.call(createAccountAssociation, { parent: two, accountAssociation });
    assert.equal(inV2.uid, two);
  });

  test('GetGroup with an invalid uid returns INVALID_ARGUMENT', async () => {
    const { getGroup } = GroupsService.method;
    const id = v2beta1Id(`${GroupsService.typeName}/${getGroup.name}`) ?? assert.fail();
    for (const uid of ['my-org', 'a/b', fixture.org.slice(1), `${fixture.org}/`, fixture.org.toUpperCase()]) {
      const refused = await rejects(fixture.api.call(getGroup, { uid }), Code.INVALID_ARGUMENT);
      assert.deepEqual(refused.fields, ['uid']);
      const former = fixture.api.call(getGroup, { uid }, { token: fixture.server.token, id });
      await rejects(former, Code.INVALID_ARGUMENT);
      // v1 reads one by filtering a list.
      await rejects(fixture.api.call(Groups.method.list, { id: uid }), Code.INVALID_ARGUMENT);
    }
  });

  test('a new organization can be deleted in spite of its owner binding', async () => {
    const { id } = await fixture.api.call(Groups.method.create, { group: { name: newName() } });
    const { items } = await fixture.api.call(RoleBindings.method.list, { uidp: { childrenOf: id } });
    assert.equal(items.length, 1);
    await fixture.api.call(Groups.method.delete, { id });
    assert.deepEqual((await fixture.api.call(Groups.method.list, { id })).items, []);
  });

  test('the token that created an organization has access to it immediately, and so has a refreshed one', async () => {
    const { token, refresh } = await login();
    const { uid, name } = await fixture
      .as(token)
      .call(GroupsService.method.createGroup, { parent: '', group: { name: newName() } });
    for (const each of [token, (await refresh()).token]) {
      const api = fixture.as(each);
      assert.equal((await api.call(GroupsService.method.getGroup, { uid })).name, name);
      assert.deepEqual(
        (await api.call(Groups.method.list, { name })).items.map((group) => group.id),
        [uid],
      );
      await api.call(Groups.method.create, { parent: uid, group: { name: newName() } });
    }
  });

  test('exp is an integer in access tokens and refresh tokens', async () => {
    const { refresh, ...first } = await login();
    for (const { token, refreshToken } of [first, await refresh()]) {
      assert.ok(Number.isInteger(claimsOf(token).exp));
      // Standard base64 with padding, of a JSON object.
      const payload = JSON.parse(Buffer.from(refreshToken, 'base64').toString());
      assert.equal(Buffer.from(refreshToken, 'base64').toString('base64'), refreshToken);
      assert.ok(Number.isInteger(payload.exp));
    }
  });
});
