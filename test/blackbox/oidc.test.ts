import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { base64url } from 'jose';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentitiesService,
  type Identity_ClaimMatchSchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { builtinRoleUid } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { newKey, sign, startIssuer } from '../support/issuer.ts';
import { type OidcProvider, startOidcProvider } from '../support/oidc.ts';
import { rejects } from '../support/rejects.ts';
import { startServerOn, startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroup, getGroup } = GroupsService.method;
const { createIdentity, deleteIdentity } = IdentitiesService.method;
const { createRoleBinding } = RoleBindingsService.method;

type ClaimMatch = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const HOUR = 60 * 60 * 1000;
let groups = 0;

for (const database of databases) {
  describe(`login with tokens of an OpenID provider on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' } });
    });
    after(() => server.remove());

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => {
        let api: Client;
        let provider: OidcProvider;
        before(async () => {
          api = wire.connect(server.url, server.token);
          provider = await startOidcProvider(['ci', 'cd'], { department: 'harbour' });
        });
        after(() => {
          api.close();
          provider.stop();
        });

        /** Creates a group, and in it an identity with a role on it that accepts tokens with these claims. */
        async function newLogin(match: ClaimMatch, role = 'viewer'): Promise<{ group: string; identity: string }> {
          const name = `oidc ${++groups}`;
          const { uid: group } = await api.call(createGroup, { parent: server.organization, group: { name } });
          const { uid: identity } = await api.call(createIdentity, {
            parent: group,
            identity: { name, relationship: { case: 'claimMatch', value: match } },
          });
          const roleBinding = { identityUid: identity, roleUid: builtinRoleUid(role) };
          await api.call(createRoleBinding, { parent: group, roleBinding });
          return { group, identity };
        }

        const claimMatchFor = (sub: string, more: ClaimMatch = {}): ClaimMatch => ({
          iss: { case: 'issuer', value: provider.issuer },
          sub: { case: 'subject', value: sub },
          ...more,
        });
        const read = (uid: string, token: string) => api.call(getGroup, { uid }, { token });

        test('a token has only the access that the bindings of its identity grant', async () => {
          const audience = 'https://us.example.com/bindings';
          const aud = { aud: { case: 'audience', value: audience } } as const;
          const { group } = await newLogin(claimMatchFor('ci', { ...aud, claims: { department: 'harbour' } }));
          const token = await provider.token('ci', audience);
          assert.equal((await read(group, token)).uid, group);
          await rejects(
            api.call(createGroup, { parent: group, group: { name: 'sub' } }, { token }),
            Code.PERMISSION_DENIED,
          );
          await rejects(read(server.organization, token), Code.PERMISSION_DENIED);
          await rejects(read(group, await provider.token('cd', audience)), Code.UNAUTHENTICATED);
        });

        test('an identity without an audience accepts tokens for the URL of this server', async () => {
          const { group, identity } = await newLogin(claimMatchFor('cd'));
          assert.equal((await read(group, await provider.token('cd', server.url))).uid, group);
          await rejects(read(group, await provider.token('cd', 'urn:another')), Code.UNAUTHENTICATED);
          await api.call(deleteIdentity, { uid: identity });
          await rejects(read(group, await provider.token('cd', server.url)), Code.UNAUTHENTICATED);
        });

        test('new keys of the provider are used without a restart', async () => {
          const audience = 'https://us.example.com/keys';
          const { group } = await newLogin(claimMatchFor('ci', { aud: { case: 'audience', value: audience } }));
          await read(group, await provider.token('ci', audience));
          provider.rotateKeys();
          assert.equal((await read(group, await provider.token('ci', audience))).uid, group);
        });

        test('of two identities with equal claims the older is used, so no login can be taken over', async () => {
          const audience = 'https://us.example.com/twins';
          const match = claimMatchFor('ci', { aud: { case: 'audience', value: audience } });
          const first = await newLogin(match);
          const twin = await newLogin(match, 'owner');
          const token = await provider.token('ci', audience);
          assert.equal((await read(first.group, token)).uid, first.group);
          await rejects(read(twin.group, token), Code.PERMISSION_DENIED);
        });

        test('patterns match whole claims', async () => {
          const audience = 'https://us.example.com/patterns';
          const sub = { case: 'subjectPattern', value: 'c' } as const;
          const { group } = await newLogin(claimMatchFor('', { sub, aud: { case: 'audience', value: audience } }));
          await rejects(read(group, await provider.token('ci', audience)), Code.UNAUTHENTICATED);
        });

        test('forged tokens and misbehaving issuers are rejected', async (t) => {
          const key = newKey('one');
          const issuer = await startIssuer(t, key);
          const { group } = await newLogin(claimMatchFor('somebody', { iss: { case: 'issuer', value: issuer.url } }));
          const now = Math.floor(Date.now() / 1000);
          const claims = { iss: issuer.url, sub: 'somebody', aud: server.url, iat: now, exp: now + 600 };
          const good = await sign(claims, key);
          assert.equal((await read(group, good)).uid, group);
          const [, payload] = good.split('.');
          const bad = [
            'nonsense',
            `${base64url.encode('{"alg":"none"}')}.${payload}.`,
            await sign(claims, newKey('one')),
            await sign(claims, newKey('two')),
            await sign({ ...claims, exp: now - 61 }, key),
            await sign({ ...claims, nbf: now + 600 }, key),
            await sign({ ...claims, iat: now + 600 }, key),
            await sign({ ...claims, aud: 'another' }, key),
            await sign({ ...claims, sub: 'another' }, key),
            await sign({ ...claims, iss: `${issuer.url}/` }, key),
          ];
          for (const token of bad) await rejects(read(group, token), Code.UNAUTHENTICATED);

          const { group: other } = await newLogin(
            claimMatchFor('x', { iss: { case: 'issuer', value: `${issuer.url}/other` } }),
          );
          const token = await sign({ ...claims, iss: `${issuer.url}/other`, sub: 'x' }, key);
          issuer.handler = (_, res) => res.writeHead(302, { location: '/keys' }).end();
          await assert.rejects(read(other, token), /redirect/);
        });
      });
    }

    test('issuers at private addresses are not contacted unless that is allowed', async (t) => {
      const key = newKey('one');
      const issuer = await startIssuer(t, key);
      const match: ClaimMatch = { iss: { case: 'issuer', value: issuer.url }, sub: { case: 'subject', value: 'x' } };
      const identity = { name: 'private', relationship: { case: 'claimMatch' as const, value: match } };
      const allowing = await startTestServer(database, { env: { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' } });
      const before = wires[0]?.connect(allowing.url, allowing.token) ?? assert.fail();
      await before.call(createIdentity, { parent: allowing.organization, identity });
      await allowing.stop();
      const strict = await startServerOn(allowing.dataLocation);
      t.after(() => strict.remove());
      const api = wires[0]?.connect(strict.url, strict.token) ?? assert.fail();
      await rejects(api.call(createIdentity, { parent: strict.organization, identity }), Code.INVALID_ARGUMENT);
      const exp = Math.floor((Date.now() + HOUR) / 1000);
      const token = await sign({ iss: issuer.url, sub: 'x', aud: strict.url, exp }, key);
      await assert.rejects(api.call(getGroup, { uid: strict.organization }, { token }), /cannot be fetched/);
      assert.deepEqual(issuer.requests, []);
    });
  });
}
