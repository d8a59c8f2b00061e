import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { GroupInvitesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { RoleBindings } from '../../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { builtinRoleUid, registeredCaller } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { withStore } from '../../support/images.ts';
import { newKey, sign, startIssuer } from '../../support/issuer.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { type Client, wires } from '../../support/wires.ts';

const { createGroup } = GroupsService.method;
const { createRoleBinding, batchCreateRoleBindings, getRoleBinding, listRoleBindings, updateRoleBinding } =
  RoleBindingsService.method;
const { createIdentityProvider } = IdentityProvidersService.method;

const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');
const ADDRESS = 'ada@private.example';

for (const database of databases) {
  for (const wire of wires) {
    describe(`people of other organizations on ${database.name} over ${wire.name}`, () => {
      let server: TestServer;
      let api: Client;
      before(async () => {
        server = await startTestServer(database, { env: { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' } });
        api = wire.connect(server.url, server.token);
      });
      after(async () => {
        api.close();
        await server.remove();
      });

      test('a role binding shows neither their e-mail address nor whether they are registered', async (t) => {
        // Ada registers through the identity provider of another organization.
        const key = newKey('one');
        const issuer = await startIssuer(t, key);
        issuer.publish(key);
        const oidc = { issuer: issuer.url, clientId: 'console' };
        await api.call(createIdentityProvider, {
          parent: server.organization,
          identityProvider: { name: 'people', defaultRole: VIEWER, configuration: { case: 'oidc', value: oidc } },
        });
        const now = Math.floor(Date.now() / 1000);
        const claims = { iss: issuer.url, aud: 'console', iat: now, exp: now + 600 };
        const login = await sign({ ...claims, sub: 'lovelace', email: ADDRESS, email_verified: true }, key);
        const { identity: ada } = await api.call(Auth.method.register, {}, { token: login });
        // Her own organization sees who she is.
        const [own] = (await api.call(listRoleBindings, { identity: ada })).roleBindings;
        assert.equal(own?.identity?.email, ADDRESS);

        const tenant = await registeredCaller(server, 'https://issuer.test');
        const roleBinding = { identityUid: tenant.uid, roleUid: builtinRoleUid('registry.push') };
        await api.call(createRoleBinding, { parent: server.organization, roleBinding });
        const thief = wire.connect(server.url, await tenant.token());
        t.after(() => thief.close());
        const { uid: parent } = await thief.call(createGroup, {
          group: { name: `thieves ${wire.name.toLowerCase()}` },
        });

        /** Everything that the thief is told about the identity with this issuer and subject. */
        const spy = async (subject: string) => {
          const told: unknown[] = [];
          const { lookupIdentity } = IdentitiesService.method;
          const { uid: identityUid } = await thief.call(lookupIdentity, { issuer: issuer.url, subject });
          const bind = (fields: MessageInitShape<typeof createRoleBinding.input>['roleBinding']) =>
            thief.call(createRoleBinding, { parent, roleBinding: { identityUid, ...fields } });
          const bound = await bind({ roleUid: VIEWER });
          told.push(bound, await thief.call(getRoleBinding, { uid: bound.uid }));
          told.push(await thief.call(updateRoleBinding, { roleBinding: { uid: bound.uid, roleUid: EDITOR } }));
          told.push(await thief.call(listRoleBindings, { identity: identityUid }));
          const requests = [{ roleBinding: { identityUid, roleUid: VIEWER } }];
          told.push(await thief.call(batchCreateRoleBindings, { parent, requests }));
          told.push(await thief.call(RoleBindings.method.list, { id: bound.uid }));
          const text = JSON.stringify(told, (_, value) => (typeof value === 'bigint' ? String(value) : value));
          return { identityUid, text };
        };
        const [registered, unknown] = [await spy('lovelace'), await spy('nobody')];
        assert.equal(registered.identityUid, ada);
        assert.ok(!registered.text.includes(ADDRESS) && !registered.text.includes('lovelace'));
        const shape = ({ identityUid, text }: typeof registered) =>
          text
            .replaceAll(identityUid, 'identity')
            .replaceAll(/[0-9a-f]{16}"/g, 'uid"')
            .replaceAll(/"(?:seconds|nanos)":"?\d+"?/g, '');
        assert.equal(shape(registered), shape(unknown));

        // Nor do the events that subscriptions of the thief's organization receive.
        await withStore(server, async (store) => {
          const sql = 'SELECT body FROM outbox WHERE scope = $1 AND body IS NOT NULL';
          const events = await store.reader.all<{ body: string }>(sql, parent);
          assert.ok(events.length >= 6);
          assert.ok(!JSON.stringify(events).includes('lovelace'));
        });

        // Ada has access all the same. When she accepts an invite, the organization sees who she is.
        const groupInvite = { roleUid: builtinRoleUid('registry.pull'), ttl: durationFromMs(60_000) };
        const { code } = await thief.call(GroupInvitesService.method.createGroupInvite, { parent, groupInvite });
        await api.call(Auth.method.register, { code }, { token: login });
        const { roleBindings } = await thief.call(listRoleBindings, { identity: ada });
        assert.deepEqual(
          roleBindings.map(({ identity }) => identity?.email),
          [ADDRESS, ADDRESS, ADDRESS],
        );
      });
    });
  }
}
