import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupInvitesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { builtinRoleUid } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { newIdentityProvider, newTenant, startSharedIssuer } from '../../support/tenants.ts';
import { type Client, wires } from '../../support/wires.ts';

const { register } = Auth.method;
const { createGroup } = GroupsService.method;
const email = 'ceo@victim.example';
const claims = { email, email_verified: true };

for (const database of databases) {
  describe(`invites for an e-mail address on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' } });
    });
    after(() => server.remove());

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => {
        let api: Client;
        before(() => {
          api = wire.connect(server.url, server.token);
        });
        after(() => api.close());

        const invite = async (parent: string) => {
          const groupInvite = { roleUid: builtinRoleUid('owner'), ttl: { seconds: 600n }, email };
          return (await api.call(GroupInvitesService.method.createGroupInvite, { parent, groupInvite })).code;
        };
        const newGroup = async (parent: string) =>
          (await api.call(createGroup, { parent, group: { name: 'team' } })).uid;

        test('an issuer of the attacker proves no address to another organization', async (t) => {
          const [victim, attacker] = [await newTenant(api), await newTenant(api)];
          const issuer = await startSharedIssuer(t);
          await newIdentityProvider(api, attacker.uid, issuer.url, 'client');
          const code = await invite(victim.uid);
          const token = await issuer.token(server, 'attacker', claims);
          const error = await rejects(api.call(register, { code }, { token }), Code.PERMISSION_DENIED);
          assert.match(error.message, /identity provider of its organization/);
          // It is trusted for the organization of its provider.
          const session = await api.call(register, { code: await invite(attacker.uid) }, { token });
          assert.equal(session.group, attacker.uid);
        });

        test('issuers of the organization of the invite and of the operator prove an address', async (t) => {
          const victim = await newTenant(api);
          const team = await newGroup(victim.uid);
          const [own, operators] = [await startSharedIssuer(t), await startSharedIssuer(t)];
          await newIdentityProvider(api, victim.uid, own.url, 'client');
          await newIdentityProvider(api, server.organization, operators.url, 'client');
          for (const issuer of [own, operators]) {
            for (const group of [victim.uid, team]) {
              const token = await issuer.token(server, 'ceo', claims);
              assert.equal((await api.call(register, { code: await invite(group) }, { token })).group, group);
            }
          }
          // A token that the same issuer issued for the client of another organization proves nothing here.
          const attacker = await newTenant(api);
          await newIdentityProvider(api, attacker.uid, own.url, 'client of the attacker');
          const token = await own.token(server, 'ceo', { ...claims, aud: 'client of the attacker' });
          await rejects(api.call(register, { code: await invite(victim.uid) }, { token }), Code.PERMISSION_DENIED);
        });
      });
    }
  });
}
