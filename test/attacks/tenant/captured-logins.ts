import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { decodeJwt } from 'jose';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { stableUid } from '../../../src/domains/iam/identities/stable-uid.ts';
import { builtinRoleUid } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { basicAuth, ociClient, pushImage } from '../../support/oci-client.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import {
  exactMatch,
  newFederatedIdentity,
  newIdentityProvider,
  newTenant,
  startSharedIssuer,
  subjectPattern,
} from '../../support/tenants.ts';
import { type Client, wires } from '../../support/wires.ts';

const { createGroup, getGroup, listGroups } = GroupsService.method;
const NAMES_IDENTITY = /identities of several organizations.*`identity`/;

for (const database of databases) {
  describe(`captured logins on ${database.name}`, () => {
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

        /** Two organizations and an issuer that both may trust. */
        async function arrange(t: TestContext) {
          return { victim: await newTenant(api), attacker: await newTenant(api), issuer: await startSharedIssuer(t) };
        }

        const whoAmI = async (token: string) => (await api.call(Auth.method.validate, {}, { token })).subject;
        const exchange = async (token: string, request: object = {}) => {
          const exchanged = await api.call(
            SecurityTokenService.method.exchange,
            { aud: [server.url], ...request },
            { token },
          );
          return decodeJwt(exchanged.token).sub;
        };

        test('an identity for any subject, made earlier, captures no token that another names exactly', async (t) => {
          const { victim, attacker, issuer } = await arrange(t);
          await newFederatedIdentity(api, attacker.uid, subjectPattern(issuer.url, '.*'));
          const ci = await newFederatedIdentity(api, victim.uid, exactMatch(issuer.url, 'repo:victim/app'));
          const token = await issuer.token(server, 'repo:victim/app');
          assert.equal((await api.call(getGroup, { uid: victim.uid }, { token })).uid, victim.uid);
          assert.equal(await whoAmI(token), ci);
          assert.equal(await exchange(token), ci);
          const created = await api.call(createGroup, { parent: victim.uid, group: { name: 'sub' } }, { token });
          assert.ok(created.uid.startsWith(victim.uid));
          const { groups } = await api.call(listGroups, {}, { token });
          assert.deepEqual(
            groups.map(({ uid }) => uid.slice(0, 40)),
            groups.map(() => victim.uid),
          );
        });

        test('an exact copy captures no token that another matches by a pattern', async (t) => {
          const { victim, attacker, issuer } = await arrange(t);
          const copy = await newFederatedIdentity(api, attacker.uid, exactMatch(issuer.url, 'repo:victim/app'));
          const ci = await newFederatedIdentity(api, victim.uid, subjectPattern(issuer.url, 'repo:victim/.*'));
          for (const parent of [victim.uid, attacker.uid]) {
            await api.call(createGroup, { parent, group: { name: 'same name' } });
          }
          const token = await issuer.token(server, 'repo:victim/app');
          assert.equal((await api.call(getGroup, { uid: victim.uid }, { token })).uid, victim.uid);
          assert.equal((await api.call(getGroup, { uid: attacker.uid }, { token })).uid, attacker.uid);
          const children = { uidp: { childrenOf: victim.uid } };
          assert.equal((await api.call(listGroups, children, { token })).groups.length, 1);
          // A request that names no organization acts as none of the two.
          const group = { name: 'where?' };
          await rejects(api.call(createGroup, { parent: 'same name', group }, { token }), Code.UNAUTHENTICATED);
          await assert.rejects(whoAmI(token), NAMES_IDENTITY);
          await assert.rejects(api.call(listGroups, {}, { token }), NAMES_IDENTITY);
          await assert.rejects(exchange(token), NAMES_IDENTITY);
          assert.equal(await exchange(token, { identity: ci }), ci);
          assert.equal(await exchange(token, { identity: copy }), copy);
          assert.equal(await exchange(token, { scopes: [victim.uid] }), ci);
        });

        test('a login through a provider never means an identity of another organization', async (t) => {
          const { victim, attacker, issuer } = await arrange(t);
          const bait = await newFederatedIdentity(api, attacker.uid, subjectPattern(issuer.url, '.*'));
          await newFederatedIdentity(api, attacker.uid, exactMatch(issuer.url, 'alice'));
          const provider = await newIdentityProvider(api, victim.uid, issuer.url, `client of ${victim.name}`);
          const token = await issuer.token(server, 'alice', { aud: `client of ${victim.name}` });
          await assert.rejects(exchange(token, { identityProvider: provider }));
          await assert.rejects(exchange(token, { identityProvider: provider, identity: bait }));
          await api.call(Auth.method.register, {}, { token });
          const alice = stableUid(issuer.url, 'alice');
          assert.equal(await exchange(token, { identityProvider: provider }), alice);
          // And the provider of the attacker gives no access to the organization of the victim.
          const ownProvider = await newIdentityProvider(api, attacker.uid, issuer.url, `client of ${victim.name}`);
          const { token: stolen } = await api.call(
            SecurityTokenService.method.exchange,
            { aud: [server.url], identityProvider: ownProvider, identity: alice },
            { token },
          );
          await rejects(api.call(getGroup, { uid: victim.uid }, { token: stolen }), Code.PERMISSION_DENIED);
        });

        test('copies of a person neither capture the login of the person nor break it', async (t) => {
          const { victim, attacker, issuer } = await arrange(t);
          await newFederatedIdentity(api, attacker.uid, exactMatch(issuer.url, 'bob'));
          await newFederatedIdentity(api, attacker.uid, subjectPattern(issuer.url, 'b.b'));
          await newIdentityProvider(api, victim.uid, issuer.url, server.url);
          const token = await issuer.token(server, 'bob');
          await api.call(Auth.method.register, {}, { token });
          const bob = stableUid(issuer.url, 'bob');
          assert.equal(await whoAmI(token), bob);
          assert.equal(await exchange(token), bob);
          assert.equal((await api.call(getGroup, { uid: victim.uid }, { token })).uid, victim.uid);
          const roleBinding = { identityUid: bob, roleUid: builtinRoleUid('owner') };
          await api.call(RoleBindingsService.method.createRoleBinding, { parent: victim.uid, roleBinding });
          await newFederatedIdentity(api, victim.uid, exactMatch(issuer.url, 'bob'), 'viewer');
          await api.call(createGroup, { parent: victim.uid, group: { name: 'by bob' } }, { token });
        });
      });
    }

    test('a push goes to the organization that its repository names, as an identity of that organization', async (t) => {
      const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
      const [victim, attacker] = [await newTenant(api), await newTenant(api)];
      const issuer = await startSharedIssuer(t);
      await newFederatedIdentity(api, attacker.uid, exactMatch(issuer.url, 'repo:victim/app'));
      await newFederatedIdentity(api, attacker.uid, subjectPattern(issuer.url, '.*'));
      await newFederatedIdentity(api, victim.uid, subjectPattern(issuer.url, 'repo:victim/.*'));
      const token = await issuer.token(server, 'repo:victim/app');
      for (const authorization of [`Bearer ${token}`, basicAuth(token)]) {
        const client = ociClient(server.url, authorization);
        t.after(() => client.close());
        await pushImage(client, `${victim.name}/app`, 'v1');
        assert.equal((await client.send('GET', `/v2/${victim.name}/app/manifests/v1`)).status, 200);
        assert.equal((await client.send('GET', '/v2/')).status, 200);
        const { status, body } = await client.send('GET', `/v2/token?scope=repository:${victim.name}/app:pull`);
        assert.equal(status, 200, body.toString());
        const registryToken = JSON.parse(body.toString()).token;
        assert.ok(decodeJwt(registryToken).sub?.startsWith(victim.uid));
        const unnamed = await client.send('GET', '/v2/token');
        assert.equal(unnamed.status, 401);
        assert.match(unnamed.body.toString(), /identities of several organizations/);
      }
    });
  });
}
