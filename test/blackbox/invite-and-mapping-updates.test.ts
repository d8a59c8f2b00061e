import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { ExternalGroupRoleMappingUpdatesService } from '../../src/contract/gen/wharfinger/iam/v1/external_group_role_mapping_updates_pb.js';
import { GroupInviteUpdatesService } from '../../src/contract/gen/wharfinger/iam/v1/group_invite_updates_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { ALLOW_TEST_ISSUERS, newTestProvider } from '../support/people.ts';
import { rejects } from '../support/rejects.ts';

const { createGroupInvite, getGroupInvite } = GroupInvitesService.method;
const { updateGroupInvite } = GroupInviteUpdatesService.method;
const { createExternalGroupRoleMapping, getExternalGroupRoleMapping } = ExternalGroupRoleMappingsService.method;
const { updateExternalGroupRoleMapping } = ExternalGroupRoleMappingUpdatesService.method;

const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');
const OWNER = builtinRoleUid('owner');
const DAY = 24 * 60 * 60;

let count = 0;

onEveryDatabaseAndWire(
  'updates of invites and mappings',
  (fixture) => {
    const newInvite = async (invite: object = {}) => {
      const parent = await fixture.newGroup();
      const groupInvite = { roleUid: VIEWER, ttl: { seconds: 600n }, ...invite };
      return { group: parent, ...(await fixture.api.call(createGroupInvite, { parent, groupInvite })) };
    };

    /** A caller that may create invites, mappings and role bindings, and holds no more than that and a viewer. */
    async function newManager(group: string) {
      const capabilities = [
        Capability.CAP_IAM_GROUP_INVITES_CREATE,
        Capability.CAP_IAM_GROUP_INVITES_LIST,
        Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
        Capability.CAP_IAM_IDENTITY_PROVIDERS_UPDATE,
      ];
      const role = { name: 'manager', capabilities };
      const { uid } = await fixture.api.call(RolesService.method.createRole, { parent: group, role });
      const machine = await callerWithRole(fixture.server, uid, group);
      const roleBinding = { identityUid: machine.uid, roleUid: VIEWER };
      await fixture.api.call(RoleBindingsService.method.createRoleBinding, { parent: group, roleBinding });
      return { uid: machine.uid, client: fixture.as(await machine.token()) };
    }

    test('an invite gets another role and expiration, and its code gives the new role', async (t) => {
      const { uid, code, group } = await newInvite();
      const before = Date.now();
      const updated = await fixture.api.call(updateGroupInvite, {
        groupInvite: { uid, roleUid: EDITOR, ttl: { seconds: BigInt(2 * DAY) } },
      });
      assert.deepEqual([updated.roleUid, updated.role?.name, updated.code], [EDITOR, 'editor', '']);
      const expires = timestampMs(updated.expirationTime ?? assert.fail());
      assert.ok(expires >= before + 2 * DAY * 1000 && expires <= Date.now() + 2 * DAY * 1000);
      const read = await fixture.api.call(getGroupInvite, { uid });
      assert.deepEqual([read.roleUid, read.expirationTime], [EDITOR, updated.expirationTime]);

      const provider = await newTestProvider(fixture, t);
      const upstream = await provider.token(`invited ${++count}`);
      const { identity } = await fixture.as(upstream).call(Auth.method.register, { code });
      const { roleBindings } = await fixture.api.call(RoleBindingsService.method.listRoleBindings, { group });
      assert.equal(roleBindings.find(({ identityUid }) => identityUid === identity)?.roleUid, EDITOR);

      const events = (await eventsAbout(fixture.db, uid)).map(({ type, body }) => ({ type, body }));
      const event = events.find(({ type }) => type === 'dev.wharfinger.api.iam.group_invite.updated.v1');
      assert.deepEqual(Object.keys(event?.body as object).sort(), ['expiration_time', 'single_use', 'uid']);
    });

    test('the expiration of an invite can be given as a time, within the limits of a new invite', async () => {
      const invite = await newInvite();
      const { uid } = invite;
      const paths = ['expiration_time'];
      const set = (ms: number, mask: object = { updateMask: { paths } }) =>
        fixture.api.call(updateGroupInvite, {
          groupInvite: { uid, expirationTime: timestampFromMs(ms), roleUid: EDITOR },
          ...mask,
        });
      const soon = Date.now() + 60_000;
      const updated = await set(soon);
      assert.ok(Math.abs(timestampMs(updated.expirationTime ?? assert.fail()) - soon) <= 1);
      assert.equal(updated.roleUid, VIEWER, 'the mask does not name the role');
      for (const ms of [Date.now() - 1000, Date.now() + 31 * DAY * 1000]) {
        assert.deepEqual((await rejects(set(ms), Code.INVALID_ARGUMENT)).fields, ['expiration_time']);
      }
      for (const seconds of [0n, -1n, BigInt(31 * DAY)]) {
        const request = { groupInvite: { uid, ttl: { seconds } } };
        assert.deepEqual((await rejects(fixture.api.call(updateGroupInvite, request), Code.INVALID_ARGUMENT)).fields, [
          'ttl',
        ]);
      }
      const empty = { groupInvite: { uid }, updateMask: { paths } };
      assert.deepEqual((await rejects(fixture.api.call(updateGroupInvite, empty), Code.INVALID_ARGUMENT)).fields, [
        'expiration_time',
      ]);
      // A client that sends back what it has read changes nothing but the role.
      const read = await fixture.api.call(getGroupInvite, { uid });
      const echoed = await fixture.api.call(updateGroupInvite, { groupInvite: { ...read, roleUid: EDITOR } });
      assert.deepEqual([echoed.roleUid, echoed.expirationTime], [EDITOR, read.expirationTime]);
    });

    test('an invite cannot be widened, and becomes the invite of the caller who changed it', async (t) => {
      const { uid, group, code } = await newInvite();
      const manager = await newManager(group);
      const change = (groupInvite: object) =>
        manager.client.call(updateGroupInvite, { groupInvite: { uid, ...groupInvite } });
      await rejects(change({ roleUid: OWNER }), Code.PERMISSION_DENIED);
      await change({ ttl: { seconds: 1200n } });
      const strong = await newInvite({ roleUid: OWNER });
      const other = await newManager(strong.group);
      // Neither prolonged nor weakened by a caller that could not create it.
      for (const groupInvite of [{ ttl: { seconds: 60n } }, { roleUid: VIEWER }]) {
        const request = { groupInvite: { uid: strong.uid, ...groupInvite } };
        await rejects(other.client.call(updateGroupInvite, request), Code.PERMISSION_DENIED);
      }
      const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
      await rejects(
        viewer.call(updateGroupInvite, { groupInvite: { uid, ttl: { seconds: 60n } } }),
        Code.PERMISSION_DENIED,
      );
      for (const [field, value] of [
        ['email', { email: 'a@example.com' }],
        ['single_use', { singleUse: true }],
      ] as const) {
        assert.deepEqual((await rejects(change(value), Code.INVALID_ARGUMENT)).fields, [field]);
      }
      // The invite ends with the access of the manager.
      const { roleBindings } = await fixture.api.call(RoleBindingsService.method.listRoleBindings, { group });
      for (const binding of roleBindings.filter(({ identityUid }) => identityUid === manager.uid)) {
        await fixture.api.call(RoleBindingsService.method.deleteRoleBinding, { uid: binding.uid });
      }
      const provider = await newTestProvider(fixture, t);
      const person = fixture.as(await provider.token(`late ${++count}`));
      await rejects(person.call(Auth.method.register, { code }), Code.PERMISSION_DENIED);
    });

    async function newMapping(mapping: object = {}) {
      const group = await fixture.newGroup();
      const { uid: parent } = await fixture.api.call(IdentityProvidersService.method.createIdentityProvider, {
        parent: fixture.org,
        identityProvider: {
          name: `updates ${++count}`,
          defaultRole: VIEWER,
          configuration: { case: 'oidc', value: { issuer: 'https://idp.example.com', clientId: `c${count}` } },
        },
      });
      const externalGroupRoleMapping = { externalGroupId: 'staff', roleUid: VIEWER, scope: group, ...mapping };
      const made = await fixture.api.call(createExternalGroupRoleMapping, { parent, externalGroupRoleMapping });
      return { provider: parent, ...made, group };
    }

    test('a mapping gets another external group, role and scope, by mask or by what is sent', async () => {
      const { uid, provider, group } = await newMapping();
      const change = (externalGroupRoleMapping: object, paths?: string[]) =>
        fixture.api.call(updateExternalGroupRoleMapping, {
          externalGroupRoleMapping: { uid, ...externalGroupRoleMapping },
          ...(paths && { updateMask: { paths } }),
        });
      const renamed = await change({ externalGroupId: 'admins', roleUid: EDITOR }, ['external_group_id']);
      assert.deepEqual([renamed.externalGroupId, renamed.roleUid, renamed.scope], ['admins', VIEWER, group]);
      const child = await fixture.newGroup(group);
      await change({ roleUid: EDITOR, scope: child, identityProviderUid: 'ignored' });
      const read = await fixture.api.call(getExternalGroupRoleMapping, { uid });
      assert.deepEqual([read.roleUid, read.scope, read.identityProviderUid], [EDITOR, child, provider]);
      const whole = await change({ scope: '' }, ['scope']);
      assert.equal(whole.scope, fixture.org);
      assert.deepEqual((await rejects(change({ roleUid: '' }, ['role_uid']), Code.INVALID_ARGUMENT)).fields, [
        'role_uid',
      ]);
      assert.deepEqual((await rejects(change({ scope: 'nowhere' }), Code.INVALID_ARGUMENT)).fields, ['scope']);
      const missing = { externalGroupRoleMapping: { uid: `${provider}/${'0'.repeat(16)}`, roleUid: EDITOR } };
      await rejects(fixture.api.call(updateExternalGroupRoleMapping, missing), Code.NOT_FOUND);
      const events = (await eventsAbout(fixture.db, uid)).map(({ type }) => type);
      assert.ok(events.includes('dev.wharfinger.api.iam.external_group_role_mappings.updated.v1'));

      const externalGroupRoleMapping = { externalGroupId: 'twins', roleUid: EDITOR };
      await fixture.api.call(createExternalGroupRoleMapping, { parent: provider, externalGroupRoleMapping });
      await rejects(change(externalGroupRoleMapping), Code.ALREADY_EXISTS);
    });

    test('a mapping cannot be widened, and not changed by a caller with less than it gives', async () => {
      const weak = await newMapping();
      const strong = await newMapping({ roleUid: OWNER });
      const { client } = await newManager(fixture.org);
      const change = (externalGroupRoleMapping: object) =>
        client.call(updateExternalGroupRoleMapping, { externalGroupRoleMapping });
      await rejects(change({ uid: weak.uid, roleUid: OWNER }), Code.PERMISSION_DENIED);
      await rejects(change({ uid: strong.uid, roleUid: VIEWER }), Code.PERMISSION_DENIED);
      await rejects(change({ uid: strong.uid, externalGroupId: 'mine' }), Code.PERMISSION_DENIED);
      await change({ uid: weak.uid, externalGroupId: 'others' });
    });
  },
  { env: ALLOW_TEST_ISSUERS },
);
