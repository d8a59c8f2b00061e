import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { builtinRoleUid } from '../../support/callers.ts';
import { databases } from '../../support/databases.ts';
import { newKey, publicJwk, sign } from '../../support/issuer.ts';
import { basicAuth, ociClient } from '../../support/oci-client.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { exactMatch, newFederatedIdentity, type SharedIssuer, startSharedIssuer } from '../../support/tenants.ts';
import { type Client, wires } from '../../support/wires.ts';

const { getGroup } = GroupsService.method;
const DAY = 24 * 60 * 60;

for (const database of databases) {
  describe(`unreasonable tokens on ${database.name}`, () => {
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
        const read = (token: string) => api.call(getGroup, { uid: server.organization }, { token });

        /** An issuer, and an identity with the subject `ci` that may read the organization. */
        async function arrange(t: Parameters<typeof startSharedIssuer>[0]): Promise<SharedIssuer> {
          const issuer = await startSharedIssuer(t);
          await newFederatedIdentity(api, server.organization, exactMatch(issuer.url, 'ci'), 'viewer');
          return issuer;
        }

        test('control characters in claims are refused as invalid tokens', async (t) => {
          const issuer = await arrange(t);
          const odd: [claim: string, value: unknown][] = [
            ['iss', `${issuer.url}\0`],
            ['iss', '\0'],
            ['sub', 'ci\0'],
            ['sub', 'ci\n'],
            ['aud', `${server.url}\0`],
            ['aud', [server.url, '\u0085']],
          ];
          for (const [claim, value] of odd) {
            const token = await issuer.token(server, 'ci', { [claim]: value });
            await rejects(read(token), Code.UNAUTHENTICATED);
            await rejects(
              api.call(SecurityTokenService.method.exchange, { aud: [server.url] }, { token }),
              Code.UNAUTHENTICATED,
            );
            await rejects(api.call(Auth.method.register, {}, { token }), Code.UNAUTHENTICATED);
            const registry = ociClient(server.url, basicAuth(token));
            t.after(() => registry.close());
            assert.equal((await registry.send('GET', '/v2/token')).status, 401);
          }
        });

        test('expiry times beyond reason are refused', async (t) => {
          const issuer = await arrange(t);
          const now = Math.floor(Date.now() / 1000);
          await read(await issuer.token(server, 'ci', { exp: now + 6 * DAY }));
          for (const claims of [
            { exp: now + 8 * DAY },
            { exp: 1e300 },
            { exp: Number.MAX_SAFE_INTEGER },
            { exp: -1 },
            // The lifetime counts from the issue of the token, and not only from now.
            { iat: now - 7 * DAY, exp: now + DAY },
          ]) {
            const error = await rejects(read(await issuer.token(server, 'ci', claims)), Code.UNAUTHENTICATED);
            assert.match(error.message, claims.exp === -1 ? /expired/ : /longer than 7 days/);
          }
        });

        test('tokens of static keys have a maximum lifetime', async () => {
          const key = newKey('static');
          const issuerKeys = JSON.stringify({ keys: [publicJwk(key)] });
          const value = { issuer: 'https://static.example', subject: `ci over ${wire.name}`, issuerKeys };
          const { uid } = await api.call(IdentitiesService.method.createIdentity, {
            parent: server.organization,
            identity: { name: 'static', relationship: { case: 'staticKeys', value } },
          });
          const roleBinding = { identityUid: uid, roleUid: builtinRoleUid('viewer') };
          await api.call(RoleBindingsService.method.createRoleBinding, { parent: server.organization, roleBinding });
          const now = Math.floor(Date.now() / 1000);
          const claims = { iss: value.issuer, sub: value.subject, aud: server.url, iat: now };
          await read(await sign({ ...claims, exp: now + DAY }, key));
          await rejects(read(await sign({ ...claims, exp: now + 300 * DAY }, key)), Code.UNAUTHENTICATED);
        });
      });
    }
  });
}
