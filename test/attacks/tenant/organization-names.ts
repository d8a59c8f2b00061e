import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService, OrgKind } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Groups } from '../../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, registeredCaller } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';
import type { Client } from '../../support/wires.ts';

const { createGroup, getGroup, updateGroup, deleteGroup } = GroupsService.method;

const DAY = 24 * 60 * 60 * 1000;

let count = 0;
const newName = (): string => `acme-${++count}`;

onEveryDatabaseAndWire('the names and the verification of organizations', (fixture) => {
  /** A person who may create organizations. */
  async function newTenant(): Promise<Client> {
    const { uid, token } = await registeredCaller(fixture.server, 'https://issuer.test');
    const roleBinding = { identityUid: uid, roleUid: builtinRoleUid('registry.push') };
    await fixture.api.call(RoleBindingsService.method.createRoleBinding, { parent: fixture.org, roleBinding });
    return fixture.as(await token());
  }

  const found = async (tenant: Client, name = newName()) => (await tenant.call(createGroup, { group: { name } })).uid;
  const rename = (tenant: Client, uid: string, name: string) => tenant.call(updateGroup, { group: { uid, name } });

  const reserved = async (work: Promise<unknown>) => {
    const { message } = await rejects(work, Code.ALREADY_EXISTS);
    const [time = ''] = /\d{4}-\d\d-\d\dT\S+Z/.exec(message) ?? [];
    assert.ok(Math.abs(Date.parse(time) - Date.now() - 30 * DAY) < DAY, message);
  };

  test('the former name of an organization cannot be taken by another tenant', async () => {
    const [tenant, thief] = [await newTenant(), await newTenant()];
    const name = newName();
    const [uid, other] = [await found(tenant, name), await found(thief)];
    await rename(tenant, uid, newName());
    await reserved(found(thief, name));
    await reserved(thief.call(Groups.method.create, { group: { name } }));
    await reserved(rename(thief, other, name));
    await reserved(thief.call(Groups.method.update, { id: other, name }));
    // The same owner may have been removed from the organization, so it cannot take the name for another one either.
    await reserved(found(tenant, name));
    await rename(tenant, uid, name);
    assert.equal((await tenant.call(getGroup, { uid })).name, name);
  });

  test('the name of a deleted organization can be taken only by the tenant who deleted it, or by an operator', async () => {
    const [tenant, thief] = [await newTenant(), await newTenant()];
    const names = [newName(), newName()];
    for (const name of names) {
      await tenant.call(deleteGroup, { uid: await found(tenant, name) });
      await reserved(found(thief, name));
    }
    await found(tenant, names[0]);
    await found(fixture.api, names[1]);
  });

  test('a name that is released at this moment cannot be caught', async () => {
    const [tenant, thief] = [await newTenant(), await newTenant()];
    const other = await found(thief);
    for (let round = 0; round < 8; round++) {
      const name = newName();
      const uid = await found(tenant, name);
      const attempts = [
        round % 2 === 0 ? rename(tenant, uid, newName()) : tenant.call(deleteGroup, { uid }),
        ...Array.from({ length: 4 }, () => found(thief, name)),
        rename(thief, other, name),
      ];
      const [release, ...caught] = await Promise.allSettled(attempts);
      assert.equal(release?.status, 'fulfilled');
      assert.ok(caught.every(({ status }) => status === 'rejected'));
    }
  });

  test('names cannot be reserved without limit by renaming', async () => {
    const tenant = await newTenant();
    const uid = await found(tenant);
    for (let i = 0; i < 10; i++) await rename(tenant, uid, newName());
    await rejects(rename(tenant, uid, newName()), Code.RESOURCE_EXHAUSTED);
  });

  test('only an operator can make an organization a verified one, which people find by their issuer', async () => {
    const tenant = await newTenant();
    const name = newName();
    await rejects(tenant.call(createGroup, { group: { name, verified: true } }), Code.PERMISSION_DENIED);
    await rejects(tenant.call(Groups.method.create, { group: { name, verified: true } }), Code.PERMISSION_DENIED);
    const uid = await found(tenant, name);
    const updateMask = { paths: ['verified', 'description'] };
    const verify = (client: Client, verified: boolean) =>
      client.call(updateGroup, { group: { uid, verified, description: 'said' }, updateMask });
    await rejects(verify(tenant, true), Code.PERMISSION_DENIED);
    await rejects(tenant.call(Groups.method.update, { id: uid, name, verified: true }), Code.PERMISSION_DENIED);
    assert.equal((await tenant.call(getGroup, { uid })).verified, false);
    // A mask may name it, as long as the value stays.
    assert.equal((await verify(tenant, false)).description, 'said');

    const { uid: mine } = await fixture.api.call(createGroup, {
      group: { name: newName(), verified: true, kind: OrgKind.CUSTOMER },
    });
    const unverify = { group: { uid: mine, verified: false }, updateMask: { paths: ['verified'] } };
    assert.equal((await fixture.api.call(updateGroup, unverify)).verified, false);
    await fixture.api.call(updateGroup, { group: { uid: mine, verified: true } });
    const { uid: person, token } = await registeredCaller(fixture.server, 'https://issuer.test');
    const roleBinding = { identityUid: person, roleUid: builtinRoleUid('owner') };
    await fixture.api.call(RoleBindingsService.method.createRoleBinding, { parent: mine, roleBinding });
    const owner = fixture.as(await token());
    await rejects(owner.call(updateGroup, unverify), Code.PERMISSION_DENIED);
    await owner.call(updateGroup, { group: { uid: mine, verified: true, description: 'kept' } });
  });
});
