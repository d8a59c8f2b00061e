import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../../src/base/errors.ts';
import { Capability } from '../../../src/contract/gen/capabilities/capabilities_pb.js';
import { ExternalGroupRoleMappingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupInvitesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { GroupInvites } from '../../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { builtinRoleUid, callerWithRole, registeredCaller } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { newKey, sign, startIssuer } from '../../support/issuer.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { type Client, wires } from '../../support/wires.ts';

const { createGroupInvite } = GroupInvitesService.method;
const { createGroup } = GroupsService.method;
const { deleteIdentity } = IdentitiesService.method;
const { createRoleBinding, listRoleBindings, updateRoleBinding, deleteRoleBinding } = RoleBindingsService.method;
const { createRole, updateRole } = RolesService.method;

const OWNER = builtinRoleUid('owner');
const VIEWER = builtinRoleUid('viewer');
const ttl = durationFromMs(3_600_000);

let count = 0;

for (const database of databases) {
  for (const wire of wires) {
    describe(`invites of a former owner on ${database.name} over ${wire.name}`, () => {
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

      /** Starts an issuer that an identity provider of a new group names. */
      async function newGroup(t: TestContext, groupsClaim = '') {
        const key = newKey('one');
        const issuer = await startIssuer(t, key);
        issuer.publish(key);
        const name = `invites ${++count}`;
        const { uid } = await api.call(createGroup, { group: { name } });
        const configuration = {
          case: 'oidc' as const,
          value: { issuer: issuer.url, clientId: 'console', groupsClaim },
        };
        const { uid: provider } = await api.call(IdentityProvidersService.method.createIdentityProvider, {
          parent: uid,
          identityProvider: { name, defaultRole: VIEWER, configuration },
        });
        const tokenOf = (sub: string, claims: object = {}) => {
          const now = Math.floor(Date.now() / 1000);
          return sign({ iss: issuer.url, sub, aud: ['console', server.url], iat: now, exp: now + 600, ...claims }, key);
        };
        /** A new person registers with the code of an invite. */
        const redeem = async (code: string) =>
          api.call(Auth.method.register, { code }, { token: await tokenOf(`person ${++count}`) });
        return { uid, provider, tokenOf, redeem };
      }

      const invite = async (client: Client, parent: string, roleUid = VIEWER, token?: string) => {
        const groupInvite = { roleUid, ttl };
        return (await client.call(createGroupInvite, { parent, groupInvite }, token ? { token } : undefined)).code;
      };

      const bindingOf = async (identity: string): Promise<string> =>
        (await api.call(listRoleBindings, { identity })).roleBindings[0]?.uid ?? assert.fail();

      const ended = async (work: Promise<unknown>) => {
        const error = await rejects(work, Code.PERMISSION_DENIED);
        assert.match(error.message, /ask .* for a new one/);
      };

      test('invites end when their creator is removed, and one of another owner works', async (t) => {
        const group = await newGroup(t);
        const fired = await callerWithRole(server, 'owner', group.uid);
        const client = wire.connect(server.url, await fired.token());
        t.after(() => client.close());
        const codes = [await invite(client, group.uid), await invite(client, group.uid, OWNER)];
        const v1 = await client.call(GroupInvites.method.create, { group: group.uid, role: OWNER, ttl });
        codes.push(v1.code);
        await group.redeem(codes[0] ?? '');
        await api.call(deleteRoleBinding, { uid: await bindingOf(fired.uid) });
        for (const code of codes) await ended(group.redeem(code));
        await group.redeem(await invite(api, group.uid, OWNER));
      });

      test('invites end when their creator is deleted or may no longer invite', async (t) => {
        const group = await newGroup(t);
        for (const remove of [
          async (uid: string) => api.call(deleteIdentity, { uid }),
          async (uid: string) =>
            api.call(updateRoleBinding, { roleBinding: { uid: await bindingOf(uid), roleUid: VIEWER } }),
        ]) {
          const fired = await callerWithRole(server, 'owner', group.uid);
          const code = await invite(api, group.uid, VIEWER, await fired.token());
          await group.redeem(code);
          await remove(fired.uid);
          await ended(group.redeem(code));
        }
      });

      test('an invite does not give what its role was extended by, if its creator does not hold it', async (t) => {
        const group = await newGroup(t);
        const { CAP_IAM_GROUPS_LIST, CAP_IAM_GROUPS_DELETE } = Capability;
        const { CAP_IAM_GROUP_INVITES_CREATE, CAP_IAM_ROLE_BINDINGS_CREATE } = Capability;
        const newRole = async (...capabilities: Capability[]) =>
          (await api.call(createRole, { parent: group.uid, role: { name: 'some', capabilities } })).uid;
        const inviter = await callerWithRole(
          server,
          await newRole(CAP_IAM_GROUP_INVITES_CREATE, CAP_IAM_ROLE_BINDINGS_CREATE, CAP_IAM_GROUPS_LIST),
          group.uid,
        );
        const uid = await newRole(CAP_IAM_GROUPS_LIST);
        const code = await invite(api, group.uid, uid, await inviter.token());
        await group.redeem(code);
        await api.call(updateRole, { role: { uid, capabilities: [CAP_IAM_GROUPS_LIST, CAP_IAM_GROUPS_DELETE] } });
        await ended(group.redeem(code));
      });

      test('invites of an owner through an identity provider end with the mapping', async (t) => {
        const group = await newGroup(t, 'groups');
        const { uid: mapping } = await api.call(
          ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping,
          {
            parent: group.provider,
            externalGroupRoleMapping: { externalGroupId: 'admins', roleUid: OWNER },
          },
        );
        const login = await group.tokenOf('admin', { groups: ['admins'] });
        await api.call(Auth.method.register, {}, { token: login });
        const { token } = await api.call(
          SecurityTokenService.method.exchange,
          { aud: [server.url], identityProvider: group.provider },
          { token: login },
        );
        const code = await invite(api, group.uid, OWNER, token);
        await group.redeem(code);
        await api.call(ExternalGroupRoleMappingsService.method.deleteExternalGroupRoleMapping, { uid: mapping });
        await ended(group.redeem(code));
      });

      // CreateWithGroup has no REST route.
      if (wire.name === 'gRPC') {
        test('an invite that was created with its organization ends too', async (t) => {
          const group = await newGroup(t);
          const founder = await registeredCaller(server, 'https://people.test');
          const roleBinding = { identityUid: founder.uid, roleUid: OWNER };
          await api.call(createRoleBinding, { parent: server.organization, roleBinding });
          const client = wire.connect(server.url, await founder.token());
          t.after(() => client.close());
          const request = { group: `invites ${++count}`, role: OWNER, ttl };
          const { code, id } = await client.call(GroupInvites.method.createWithGroup, request);
          const { identity } = await group.redeem(code);
          const parent = id.slice(0, 40);
          const { roleBindings } = await client.call(listRoleBindings, { group: parent });
          assert.ok(roleBindings.some(({ identityUid }) => identityUid === identity));
          const own = roleBindings.find(({ identityUid }) => identityUid === founder.uid) ?? assert.fail();
          await client.call(deleteRoleBinding, { uid: own.uid });
          await ended(group.redeem(code));
        });
      }
    });
  }
}
