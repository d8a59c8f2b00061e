import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { parentOf, ROOT } from '../../../src/base/uid.ts';
import { Capability } from '../../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { ServerIdentitiesService } from '../../../src/contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole, registeredCaller } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';
import type { CallError, Client } from '../../support/wires.ts';

const { createGroup, getGroup, listGroups, updateGroup, deleteGroup } = GroupsService.method;
const { createIdentity, getIdentity, updateIdentity, deleteIdentity, listIdentities } = IdentitiesService.method;
const { createRoleBinding, listRoleBindings } = RoleBindingsService.method;

const OWNER = builtinRoleUid('owner');

let count = 0;
const newName = (): string => `machine tenant ${++count}`;
const found = async (client: Client): Promise<string> =>
  (await client.call(createGroup, { group: { name: newName() } })).uid;

const subjectOf = (error: CallError): unknown =>
  (error.detail('QuotaFailure')?.violations as { subject: string }[] | undefined)?.[0]?.subject;

onEveryDatabaseAndWire(
  'an identity inside of a group that has founded an organization',
  (fixture) => {
    const connect = async ({ token }: { token(): Promise<string> }): Promise<Client> => fixture.as(await token());

    /** An organization of an operator, and an identity with a weak role at a group in it. */
    async function newMachine(role = 'registry.push') {
      const home = (await fixture.api.call(createGroup, { group: { name: newName() } })).uid;
      const group = await fixture.newGroup(home);
      const machine = await callerWithRole(fixture.server, role, group);
      return { home, group, uid: machine.uid, client: await connect(machine) };
    }

    test('gets nothing more at its own organization, and its organization nothing at what it founded', async () => {
      const { home, group, uid, client } = await newMachine();
      const before = await client.call(listGroups, {});
      const org = await found(client);
      for (const target of [home, group]) {
        const rename = { uid: target, description: 'taken over' };
        await rejects(client.call(updateGroup, { group: rename }), Code.PERMISSION_DENIED);
        const roleBinding = { identityUid: uid, roleUid: OWNER };
        await rejects(client.call(createRoleBinding, { parent: target, roleBinding }), Code.PERMISSION_DENIED);
      }
      const visible = (await client.call(listGroups, {})).groups.map((listed) => listed.uid);
      assert.deepEqual(
        visible.filter((listed) => listed !== org),
        before.groups.map((listed) => listed.uid),
      );

      // Owners of its group and of its organization, and other identities of its group.
      for (const at of [home, group]) {
        const owner = await connect(await callerWithRole(fixture.server, 'owner', at));
        await rejects(owner.call(getGroup, { uid: org }), Code.PERMISSION_DENIED);
        await rejects(owner.call(deleteGroup, { uid: org }), Code.PERMISSION_DENIED);
        const listed = (await owner.call(listGroups, {})).groups.map((seen) => seen.uid);
        assert.ok(!listed.includes(org));
        const { roleBindings } = await owner.call(listRoleBindings, { identity: uid });
        assert.deepEqual(
          roleBindings.filter((binding) => binding.uid.startsWith(org)),
          [],
        );
      }
    });

    test('cannot bring other identities of its group along, nor roles of its group', async () => {
      const { group, client } = await newMachine();
      const org = await found(client);
      const sibling = await callerWithoutRole(fixture.server, group);
      const roleBinding = { identityUid: sibling.uid, roleUid: builtinRoleUid('viewer') };
      const refused = await rejects(
        client.call(createRoleBinding, { parent: org, roleBinding }),
        Code.INVALID_ARGUMENT,
      );
      assert.deepEqual(refused.fields, ['identity_uid']);
      await rejects((await connect(sibling)).call(getGroup, { uid: org }), Code.PERMISSION_DENIED);

      const role = { name: 'of home', capabilities: [Capability.CAP_IAM_GROUPS_LIST] };
      const { uid: roleUid } = await fixture.api.call(RolesService.method.createRole, { parent: group, role });
      const own = (await client.call(listRoleBindings, { group: org })).roleBindings[0] ?? assert.fail();
      const foreignRole = { identityUid: own.identityUid, roleUid };
      await rejects(client.call(createRoleBinding, { parent: org, roleBinding: foreignRole }), Code.INVALID_ARGUMENT);
    });

    test('an identity of what it founded has no access to its group, and cannot act for it', async () => {
      const { group, uid, client } = await newMachine('owner');
      const org = await found(client);
      const identity = { name: 'planted' };
      const { uid: planted } = await client.call(createIdentity, { parent: org, identity });
      const roleBinding = { identityUid: planted, roleUid: builtinRoleUid('viewer') };
      await rejects(client.call(createRoleBinding, { parent: group, roleBinding }), Code.INVALID_ARGUMENT);
      // An owner of the organization cannot change the identity that founded it.
      const accomplice = await registeredCaller(fixture.server, 'https://accomplices.test');
      const asOwner = { identityUid: accomplice.uid, roleUid: OWNER };
      await client.call(createRoleBinding, { parent: org, roleBinding: asOwner });
      const helper = await connect(accomplice);
      await helper.call(getGroup, { uid: org });
      await rejects(helper.call(getIdentity, { uid }), Code.PERMISSION_DENIED);
      await rejects(helper.call(updateIdentity, { identity: { uid, name: 'taken' } }), Code.PERMISSION_DENIED);
      await rejects(helper.call(deleteIdentity, { uid }), Code.PERMISSION_DENIED);
      assert.deepEqual(
        (await helper.call(listIdentities, {})).identities.map((listed) => listed.uid),
        [planted],
      );
    });

    test('an operator inside of a group founds as an owner, and never acts for the whole server', async () => {
      const { client } = await newMachine('operator');
      const org = await found(client);
      const { roleBindings } = await client.call(listRoleBindings, { group: org });
      assert.deepEqual(
        roleBindings.map(({ role }) => role?.name),
        ['owner'],
      );
      const { listServerIdentities } = ServerIdentitiesService.method;
      await rejects(client.call(listServerIdentities, {}), Code.PERMISSION_DENIED);
    });

    test('stays under the control of the owners of its group, and of nobody with less', async () => {
      const { group, uid, client } = await newMachine();
      const org = await found(client);
      const manager = {
        name: 'manager',
        capabilities: [
          Capability.CAP_IAM_IDENTITY_UPDATE,
          Capability.CAP_IAM_IDENTITY_DELETE,
          Capability.CAP_IAM_IDENTITY_LIST,
        ],
      };
      const { uid: roleUid } = await fixture.api.call(RolesService.method.createRole, { parent: group, role: manager });
      const weak = await connect(await callerWithRole(fixture.server, roleUid, group));
      const takeover = { uid, relationship: newLogin() };
      // The login would own the organization.
      await rejects(weak.call(updateIdentity, { identity: takeover }), Code.PERMISSION_DENIED);
      await rejects(weak.call(deleteIdentity, { uid }), Code.PERMISSION_DENIED);

      const owner = await connect(await callerWithRole(fixture.server, 'owner', group));
      // It is the last owner of what it founded. The owner ends its logins, or acts as it.
      const last = await rejects(owner.call(deleteIdentity, { uid }), Code.FAILED_PRECONDITION);
      assert.match(JSON.stringify(last.detail('PreconditionFailure')), new RegExp(`LAST_OWNER.*${org}`));
      await owner.call(updateIdentity, { identity: takeover });
      await rejects(client.call(getGroup, { uid: org }), Code.UNAUTHENTICATED);
    });

    test('can be deleted by an owner of its group once the organization has another owner', async () => {
      const { group, uid, client } = await newMachine();
      const org = await found(client);
      const successor = await registeredCaller(fixture.server, 'https://successors.test');
      const roleBinding = { identityUid: successor.uid, roleUid: OWNER };
      await client.call(createRoleBinding, { parent: org, roleBinding });
      const owner = await connect(await callerWithRole(fixture.server, 'owner', group));
      await owner.call(deleteIdentity, { uid });
      await rejects(client.call(getGroup, { uid: org }), Code.UNAUTHENTICATED);
      const { roleBindings } = await (await connect(successor)).call(listRoleBindings, { group: org });
      assert.deepEqual(
        roleBindings.map(({ identityUid }) => identityUid),
        [successor.uid],
      );
    });

    test('cannot create organizations without end by creating identities that create some', async () => {
      const { home, client } = await newMachine('owner');
      const first = await found(client);
      const planted = await plantOwner(client, first);
      const second = await found(planted);
      const deeper = await plantOwner(planted, second);
      // Three: the limit for the organization of the operator, whose identities all of them come from.
      await found(deeper);
      for (const attacker of [client, planted, deeper, await plantOwner(deeper, second)]) {
        const refused = await rejects(found(attacker), Code.RESOURCE_EXHAUSTED);
        assert.equal(subjectOf(refused), `organization:${home}`);
      }
      // Another organization is not affected.
      await found((await newMachine()).client);
    });

    test('shares the quota of the person who founded its organization, also after that is deleted', async () => {
      const person = await registeredCaller(fixture.server, 'https://people.test');
      const roleBinding = { identityUid: person.uid, roleUid: builtinRoleUid('registry.push') };
      await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
      const founder = await connect(person);
      const org = await found(founder);
      const planted = await plantOwner(founder, org);
      const another = await found(planted);
      await found(await plantOwner(planted, another));
      const refused = await rejects(found(planted), Code.RESOURCE_EXHAUSTED);
      assert.equal(subjectOf(refused), `identity:${person.uid}`);
      await rejects(found(founder), Code.RESOURCE_EXHAUSTED);
      const { groups } = await founder.call(listGroups, {});
      assert.equal(groups.filter((listed) => parentOf(listed.uid) === ROOT).length, 2, 'with the one of the operator');
    });

    /** Creates an identity with the role owner in `org`, as an owner of it, and returns a client with its token. */
    async function plantOwner(owner: Client, org: string): Promise<Client> {
      const planted = await callerWithoutRole(fixture.server, fixture.org);
      const { relationship } = await fixture.api.call(getIdentity, { uid: planted.uid });
      await fixture.api.call(deleteIdentity, { uid: planted.uid });
      const identity = { name: newName(), relationship };
      const { uid: identityUid } = await owner.call(createIdentity, { parent: org, identity });
      await owner.call(createRoleBinding, { parent: org, roleBinding: { identityUid, roleUid: OWNER } });
      return connect(planted);
    }
  },
  { env: { WHARF_MAX_ORGS: '3' } },
);

const newLogin = () => ({
  case: 'claimMatch' as const,
  value: {
    iss: { case: 'issuer' as const, value: 'https://attacker.example.com' },
    sub: { case: 'subject' as const, value: `attacker ${++count}` },
  },
});
