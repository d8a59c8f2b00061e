import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Groups } from '../../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { RoleBindings } from '../../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { readOwner } from '../../../src/identity/owner/owner-key.ts';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, registeredCaller, type TestCaller } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { type Client, wires } from '../../support/wires.ts';

const { createRoleBinding, listRoleBindings, updateRoleBinding, deleteRoleBinding } = RoleBindingsService.method;
const { createGroup, getGroup, listGroups, deleteGroup } = GroupsService.method;
const { createIdentity, deleteIdentity } = IdentitiesService.method;

const OWNER = builtinRoleUid('owner');
const VIEWER = builtinRoleUid('viewer');

let count = 0;

onEveryDatabaseAndWire('the last owner of an organization', (fixture) => {
  /** A person who may create organizations. */
  async function newPerson(): Promise<TestCaller & { readonly client: Client }> {
    const person = await registeredCaller(fixture.server, 'https://issuer.test');
    const roleBinding = { identityUid: person.uid, roleUid: builtinRoleUid('registry.push') };
    await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
    return { ...person, client: fixture.as(await person.token()) };
  }

  async function newOrganization(founder: { readonly client: Client }) {
    const { uid } = await founder.client.call(createGroup, { group: { name: `last owner ${++count}` } });
    const { roleBindings } = await founder.client.call(listRoleBindings, { group: uid });
    return { uid, binding: roleBindings[0]?.uid ?? assert.fail() };
  }

  const lastOwner = async (work: Promise<unknown>) => {
    const error = await rejects(work, Code.FAILED_PRECONDITION);
    assert.match(JSON.stringify(error.detail('PreconditionFailure')), /LAST_OWNER/);
  };

  test('the only owner cannot leave by deleting or changing its binding, or by deleting its account', async () => {
    const founder = await newPerson();
    const { client, uid: identityUid } = founder;
    const { uid: org, binding } = await newOrganization(founder);
    const other = await newPerson();
    await client.call(createRoleBinding, { parent: org, roleBinding: { identityUid: other.uid, roleUid: VIEWER } });
    await lastOwner(client.call(deleteRoleBinding, { uid: binding }));
    await lastOwner(client.call(RoleBindings.method.delete, { id: binding }));
    await lastOwner(client.call(updateRoleBinding, { roleBinding: { uid: binding, roleUid: VIEWER } }));
    await lastOwner(client.call(RoleBindings.method.update, { id: binding, role: VIEWER, identity: identityUid }));
    await lastOwner(client.call(Auth.method.delete, { id: identityUid }));
    // A machine that cannot log in is no owner.
    const { uid: machine } = await client.call(createIdentity, { parent: org, identity: { name: 'no login' } });
    await lastOwner(client.call(updateRoleBinding, { roleBinding: { uid: binding, identityUid: machine } }));
    await client.call(createRoleBinding, { parent: org, roleBinding: { identityUid: machine, roleUid: OWNER } });
    await lastOwner(client.call(deleteRoleBinding, { uid: binding }));

    // With a successor, the founder can leave.
    await client.call(createRoleBinding, { parent: org, roleBinding: { identityUid: other.uid, roleUid: OWNER } });
    await client.call(deleteRoleBinding, { uid: binding });
    await rejects(client.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
    await other.client.call(deleteIdentity, { uid: machine });
    await lastOwner(other.client.call(Auth.method.delete, { id: other.uid }));
  });

  test('of the last two owners who remove each other at the same time, one remains', async () => {
    for (let round = 0; round < 5; round++) {
      const [founder, other] = [await newPerson(), await newPerson()];
      const { uid: org, binding } = await newOrganization(founder);
      const roleBinding = { identityUid: other.uid, roleUid: OWNER };
      const { uid } = await founder.client.call(createRoleBinding, { parent: org, roleBinding });
      const results = await Promise.allSettled([
        founder.client.call(deleteRoleBinding, { uid }),
        round % 2 === 0
          ? other.client.call(deleteRoleBinding, { uid: binding })
          : founder.client.call(Auth.method.delete, { id: founder.uid }),
      ]);
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1, JSON.stringify(results));
    }
  });

  test('an owner can delete an organization as a whole', async () => {
    const founder = await newPerson();
    const { uid } = await newOrganization(founder);
    await founder.client.call(deleteGroup, { uid });
    await founder.client.call(Auth.method.delete, { id: founder.uid });
  });
});

for (const database of databases) {
  for (const wire of wires) {
    describe(`the last operator on ${database.name} over ${wire.name}`, () => {
      let server: TestServer;
      let api: Client;
      let operator: string;
      before(async () => {
        server = await startTestServer(database);
        api = wire.connect(server.url, server.token);
        operator = (await readOwner(server.dataLocation.dataDir))?.identity ?? assert.fail();
      });
      after(async () => {
        api.close();
        await server.remove();
      });

      const lastOperator = async (work: Promise<unknown>, type = /LAST_(?:OWNER|OPERATOR)/) => {
        const error = await rejects(work, Code.FAILED_PRECONDITION);
        assert.match(JSON.stringify(error.detail('PreconditionFailure')), type);
        return error.message;
      };

      const bindingAt = async (group: string) =>
        (await api.call(listRoleBindings, { group, identity: operator })).roleBindings[0]?.uid ?? assert.fail();

      test('the last organization of the operator cannot be deleted, and others can', async () => {
        const { organization: first } = server;
        assert.match(await lastOperator(api.call(deleteGroup, { uid: first })), /create another organization/);
        await lastOperator(api.call(Groups.method.delete, { id: first }));
        const { uid: second } = await api.call(createGroup, { group: { name: 'second' } });
        await api.call(deleteGroup, { uid: first });
        await lastOperator(api.call(deleteGroup, { uid: second }));
        await api.call(createGroup, { parent: second, group: { name: 'still works' } });
      });

      test('the last operator cannot remove or demote itself', async () => {
        const { uid: group } = await api.call(createGroup, { group: { name: 'third' } });
        const { groups } = await api.call(listGroups, { name: 'second' });
        const org = groups[0]?.uid ?? assert.fail();
        // Another owner is not another operator.
        const person = await registeredCaller(server, 'https://issuer.test');
        for (const parent of [group, org]) {
          await api.call(createRoleBinding, { parent, roleBinding: { identityUid: person.uid, roleUid: OWNER } });
        }
        await api.call(deleteRoleBinding, { uid: await bindingAt(group) });
        const uid = await bindingAt(org);
        await lastOperator(api.call(deleteRoleBinding, { uid }), /LAST_OPERATOR/);
        await lastOperator(api.call(updateRoleBinding, { roleBinding: { uid, roleUid: OWNER } }), /LAST_OPERATOR/);
        await lastOperator(api.call(Auth.method.delete, { id: operator }), /LAST_OPERATOR/);
      });
    });
  }
}
