// A tenant lets its own identity provider register people without end. Its quota ends it; other organizations go on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { builtinRoleUid } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { newKey, sign, startIssuer } from '../../support/issuer.ts';
import { rejects } from '../../support/rejects.ts';
import { startServerOn, startTestServer } from '../../support/server.ts';
import { wires } from '../../support/wires.ts';

const { register } = Auth.method;
const env = { WHARF_ALLOW_PRIVATE_ISSUERS: 'true', WHARF_MAX_REGISTRATIONS: '3' };

describe('registrations', () => {
  for (const database of databases) {
    for (const wire of wires) {
      test(`an organization cannot register people without end on ${database.name} over ${wire.name}`, async (t) => {
        // In the middle of an hour, so that the test does not run into the next one.
        const start = Math.floor(Date.now() / 3_600_000) * 3_600_000 + 1_800_000;
        let now = start;
        const server = await startTestServer(database, { env, clock: () => now });
        const other = await startServerOn(server.dataLocation, { env, clock: () => now });
        const [api, otherApi] = [server, other].map(({ url }) => wire.connect(url, server.token));
        assert.ok(api && otherApi);
        t.after(async () => {
          api.close();
          otherApi.close();
          await other.stop();
          await server.remove();
        });
        const key = newKey('k');
        const issuer = await startIssuer(t, key);

        /** Creates an organization with an identity provider, and returns a function that signs tokens of its people. */
        async function newOrganization(name: string) {
          const { uid } = (await api?.call(GroupsService.method.createGroup, { group: { name } })) ?? assert.fail();
          const clientId = `https://${name}.example.com`;
          await newProvider(uid, clientId);
          let people = 0;
          const token = () => {
            const iat = Math.floor(now / 1000);
            const claims = { iss: issuer.url, sub: `${name}-${++people}`, aud: clientId, iat, exp: iat + 600 };
            return sign(claims, key);
          };
          return { uid, clientId, token };
        }

        async function newProvider(parent: string, clientId: string): Promise<void> {
          const identityProvider = {
            name: clientId.replaceAll(/[:/]+/g, '-'),
            defaultRole: builtinRoleUid('viewer'),
            configuration: { case: 'oidc' as const, value: { issuer: issuer.url, clientId } },
          };
          await api?.call(IdentityProvidersService.method.createIdentityProvider, { parent, identityProvider });
        }

        const greedy = await newOrganization('greedy');
        const modest = await newOrganization('modest');
        const tokens = await Promise.all(Array.from({ length: 8 }, greedy.token));
        const results = await Promise.allSettled(
          tokens.map((token, i) => (i % 2 ? api : otherApi).call(register, {}, { token })),
        );
        const registered = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [tokens[i] ?? ''] : []));
        assert.equal(registered.length, 3);
        const refused = await rejects(api.call(register, {}, { token: await greedy.token() }), Code.RESOURCE_EXHAUSTED);
        assert.match(JSON.stringify(refused.detail('QuotaFailure')), new RegExp(`organization:${greedy.uid}`));
        assert.equal(refused.retryAfter, '1800');
        // Registering again changes nothing, so it does not count. Neither do people of another organization.
        await api.call(register, {}, { token: registered[0] ?? '' });
        await api.call(register, {}, { token: await modest.token() });
        // Nor does a copy of their provider keep them out.
        await newProvider(greedy.uid, modest.clientId);
        await api.call(register, {}, { token: await modest.token() });
        now += 1_800_000;
        await api.call(register, {}, { token: await greedy.token() });
      });
    }
  }
});
