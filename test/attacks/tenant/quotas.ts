// A tenant takes more than its share: requests, logins, organizations, resources. Its own quota ends it; others go on.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { Capability } from '../../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { GroupInvites } from '../../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { openStore } from '../../../src/store/open.ts';
import { builtinRoleUid, callerWithRole, registeredCaller } from '../../support/callers.ts';
import { assertConsistent } from '../../support/consistency.ts';
import { databases } from '../../support/databases.ts';
import { rejects } from '../../support/rejects.ts';
import { startServerOn, startTestServer, type TestServer } from '../../support/server.ts';
import { type CallError, type Client, type Wire, wires } from '../../support/wires.ts';

const { createGroup, deleteGroup, getGroup } = GroupsService.method;
const { createRole, deleteRole } = RolesService.method;
const { exchange, exchangeRefreshToken } = SecurityTokenService.method;

/** Asserts that an error has everything that a client needs to know about an exhausted quota. */
function assertQuota(error: CallError, subject: string): void {
  const [violation] = (error.detail('QuotaFailure')?.violations ?? []) as { subject: string; description: string }[];
  assert.equal(violation?.subject, subject);
  assert.ok(error.message.endsWith(violation?.description ?? '-'));
  const delay = Number.parseFloat(String(error.detail('RetryInfo')?.retryDelay));
  assert.ok(delay > 0);
  assert.equal(error.retryAfter, String(Math.max(1, Math.ceil(delay))));
}

const FOUNDER_BINDING = `SELECT uid FROM reference WHERE kind = 'role binding' AND field = 'identity' AND value = $1
  AND uid LIKE $2 || '/%'`;

const env = { WHARF_MAX_ORGS: '2', WHARF_MAX_ORG_RESOURCES: '20', WHARF_MAX_REFRESH_TOKENS: '3' };

for (const database of databases) {
  describe(`quotas of tenants on ${database.name}`, () => {
    let passed = 0;
    const clock = () => Date.now() + passed;
    let server: TestServer;
    let other: TestServer;
    const clients: Client[] = [];
    before(async () => {
      server = await startTestServer(database, { env, clock });
      // A second server on the same database. SQLite allows several processes on one machine.
      other = await startServerOn(server.dataLocation, { env, clock });
    });
    after(async () => {
      for (const client of clients) client.close();
      await other.stop();
      const store = await openStore(server.dataLocation);
      try {
        await assertConsistent(store.reader);
      } finally {
        await store.close();
        await server.remove();
      }
    });
    const connect = (wire: Wire, at: TestServer, token: string): Client => {
      const client = wire.connect(at.url, token);
      clients.push(client);
      return client;
    };

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => {
        const owner = () => connect(wire, server, server.token);
        let names = 0;
        const newName = () => `quota ${wire.name.toLowerCase()} ${++names}`;
        const newOrganization = async () => (await owner().call(createGroup, { group: { name: newName() } })).uid;

        /** A person who owns an organization, and so may create others. */
        async function newOwner() {
          const org = await newOrganization();
          const person = await registeredCaller(server, `https://people-${wire.name.toLowerCase()}.test`);
          const roleBinding = { identityUid: person.uid, roleUid: builtinRoleUid('owner') };
          await owner().call(RoleBindingsService.method.createRoleBinding, { parent: org, roleBinding });
          return { org, uid: person.uid, token: await person.token() };
        }

        test('one identity cannot create organizations without end, also not on two servers at once', async () => {
          const { uid, token } = await newOwner();
          const servers = [connect(wire, server, token), connect(wire, other, token)];
          const attempts = Array.from({ length: 8 }, (_, i) =>
            (servers[i % 2] as Client).call(createGroup, { group: { name: newName() } }),
          );
          const results = await Promise.allSettled(attempts);
          const created = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.uid] : []));
          assert.equal(created.length, 2);
          const [api = assert.fail()] = servers;
          const refused = await rejects(api.call(createGroup, { group: { name: newName() } }), Code.RESOURCE_EXHAUSTED);
          assertQuota(refused, `identity:${uid}`);
          // v1 has a second way to create one, without a REST route.
          const invite = { group: newName(), role: builtinRoleUid('viewer'), ttl: { seconds: 60n } };
          const overGrpc = connect(wires.at(-1) ?? assert.fail(), server, token);
          await rejects(overGrpc.call(GroupInvites.method.createWithGroup, invite), Code.RESOURCE_EXHAUSTED);

          // An organization still counts after an accomplice has taken it over.
          const [taken = ''] = created;
          const accomplice = await registeredCaller(server, 'https://accomplices.test');
          const roleBinding = { identityUid: accomplice.uid, roleUid: builtinRoleUid('owner') };
          await api.call(RoleBindingsService.method.createRoleBinding, { parent: taken, roleBinding });
          const store = await openStore(server.dataLocation);
          const binding = await store.reader.get<{ uid: string }>(FOUNDER_BINDING, uid, taken);
          await store.close();
          const helper = connect(wire, server, await accomplice.token());
          await helper.call(RoleBindingsService.method.deleteRoleBinding, { uid: binding?.uid ?? '' });
          await rejects(api.call(createGroup, { group: { name: newName() } }), Code.RESOURCE_EXHAUSTED);

          // One that is deleted does not count, and an operator has no such quota.
          const own = created[1] ?? '';
          await api.call(deleteGroup, { uid: own });
          await api.call(createGroup, { group: { name: newName() } });
          for (let i = 0; i < 3; i++) await newOrganization();
        });

        test('one organization cannot hold resources without end, and others are not affected', async () => {
          const org = await newOrganization();
          const { token } = await callerWithRole(server, 'owner', org);
          const servers = [connect(wire, server, await token()), connect(wire, other, await token())];
          const role = () => ({ name: newName(), capabilities: [Capability.CAP_IAM_GROUPS_LIST] });
          const attempts = Array.from({ length: 40 }, (_, i) =>
            (servers[i % 2] as Client).call(createRole, { parent: org, role: role() }),
          );
          const neighbour = newOrganization();
          const results = await Promise.allSettled(attempts);
          const created = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.uid] : []));
          assert.equal(created.length, 20);
          const [api = assert.fail()] = servers;
          const refused = await rejects(api.call(createRole, { parent: org, role: role() }), Code.RESOURCE_EXHAUSTED);
          assertQuota(refused, `organization:${org}`);
          // The quota is that of the organization: a group in it does not help. Other kinds and organizations have room.
          const { uid: group } = await api.call(createGroup, { parent: org, group: { name: newName() } });
          await rejects(api.call(createRole, { parent: group, role: role() }), Code.RESOURCE_EXHAUSTED);
          await owner().call(createRole, { parent: await neighbour, role: role() });
          await api.call(deleteRole, { uid: created[0] ?? '' });
          passed += 1_000;
          await api.call(createRole, { parent: org, role: role() });
        });

        test('logins of one identity do not pile up: the oldest ends', async () => {
          const org = await newOrganization();
          const { token } = await callerWithRole(server, 'viewer', org);
          const anonymous = connect(wire, server, '');
          const refreshTokens: string[] = [];
          const accessTokens: string[] = [];
          for (let i = 0; i < 5; i++) {
            passed += 1_000;
            const issued = await anonymous.call(exchange, { aud: [server.url] }, { token: await token() });
            refreshTokens.push(issued.refreshToken);
            accessTokens.push(issued.token);
          }
          const renew = (refreshToken = '') =>
            anonymous.call(exchangeRefreshToken, { aud: [server.url] }, { token: refreshToken });
          for (const ended of refreshTokens.slice(0, 2)) await rejects(renew(ended), Code.UNAUTHENTICATED);
          for (const live of refreshTokens.slice(2)) await renew(live);
          // The jobs of a build system that began before others still run.
          for (const running of accessTokens) await anonymous.call(getGroup, { uid: org }, { token: running });
        });
      });
    }
  });

  describe(`rate limit of an identity on ${database.name}`, () => {
    let now = Date.now();
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_IDENTITY_RATE: '3' }, clock: () => now });
    });
    after(() => server.remove());

    for (const wire of wires) {
      test(`an identity that sends too much over ${wire.name} is slowed down, others are not`, async () => {
        now += 60_000;
        const { uid, token } = await callerWithRole(server, 'viewer', server.organization);
        const busy = wire.connect(server.url, await token());
        const calm = wire.connect(server.url, server.token);
        try {
          const read = (client: Client) => client.call(getGroup, { uid: server.organization });
          // Ten seconds' worth at once.
          for (let i = 0; i < 30; i++) await read(busy);
          assertQuota(await rejects(read(busy), Code.RESOURCE_EXHAUSTED), `identity:${uid}`);
          await read(calm);
          now += 334;
          await read(busy);
          await rejects(read(busy), Code.RESOURCE_EXHAUSTED);
          const response = await fetch(`${server.url}/v2/`, { headers: { authorization: `Bearer ${await token()}` } });
          assert.equal(response.status, 429);
          assert.equal(response.headers.get('retry-after'), '1');
          const { errors } = (await response.json()) as { errors: { code: string; detail: object }[] };
          assert.equal(errors[0]?.code, 'TOOMANYREQUESTS');
          assert.match(JSON.stringify(errors[0]?.detail), new RegExp(`identity:${uid}`));
        } finally {
          busy.close();
          calm.close();
        }
      });
    }
  });
}
