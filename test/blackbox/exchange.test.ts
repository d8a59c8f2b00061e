import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { Code } from '../../src/base/errors.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { loadConfig } from '../../src/config.ts';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { type Server, startServer } from '../../src/main.ts';
import { builtinRoleUid } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { type OidcProvider, startOidcProvider } from '../support/oidc.ts';
import { rejects } from '../support/rejects.ts';
import { silentLog, startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;
const { validate, register, delete: leave } = Auth.method;
const { createGroup, getGroup, listGroups } = GroupsService.method;
const { createIdentity, deleteIdentity } = IdentitiesService.method;
const { createIdentityProvider, deleteIdentityProvider } = IdentityProvidersService.method;
const { createRoleBinding } = RoleBindingsService.method;

/** The audience of the provider's tokens for people. */
const CLIENT = 'https://client.example.com';
let names = 0;

async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  holder.close();
  await once(holder, 'close');
  return port;
}

for (const database of databases) {
  describe(`token exchange on ${database.name}`, () => {
    let provider: OidcProvider;
    let server: TestServer;
    /** A second server on the same database, as in a deployment of several servers with one public URL. */
    let other: Server;
    let otherUrl: string;

    before(async () => {
      provider = await startOidcProvider(['ci', 'alice-rest', 'alice-grpc'], {
        groups: ['harbour'],
        email: 'a@b.example',
      });
      const env = { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' };
      server = await startTestServer(database, { env });
      const { dataDir: data, databaseUrl } = server.dataLocation;
      const listen = `127.0.0.1:${await freePort()}`;
      otherUrl = `http://${listen}`;
      other = await startServer(loadConfig({ data, databaseUrl, listen, publicUrl: server.url }, env), {
        log: silentLog,
      });
    });
    after(async () => {
      await other.stop();
      await server.remove();
      provider.stop();
    });

    const post = (path: string, token: string, form: string | URLSearchParams, headers: Record<string, string> = {}) =>
      fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/x-www-form-urlencoded',
          ...headers,
        },
        body: String(form),
      });

    const json = { 'content-type': 'application/json' };

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => {
        let api: Client;
        let otherApi: Client;
        before(() => {
          api = wire.connect(server.url, server.token);
          otherApi = wire.connect(otherUrl, undefined);
        });
        after(() => {
          api.close();
          otherApi.close();
        });

        /** Creates a group, and in it an identity with the viewer role that logs in as the provider's client `ci`. */
        async function newMachine(): Promise<{ group: string; identity: string; upstream: string }> {
          const name = `exchange ${++names}`;
          const audience = `https://${names}.example.com`;
          const { uid: group } = await api.call(createGroup, { parent: server.organization, group: { name } });
          const value = {
            iss: { case: 'issuer', value: provider.issuer },
            sub: { case: 'subject', value: 'ci' },
            aud: { case: 'audience', value: audience },
          } as const;
          const { uid: identity } = await api.call(createIdentity, {
            parent: group,
            identity: { name, relationship: { case: 'claimMatch', value } },
          });
          const roleBinding = { identityUid: identity, roleUid: builtinRoleUid('viewer') };
          await api.call(createRoleBinding, { parent: group, roleBinding });
          return { group, identity, upstream: await provider.token('ci', audience) };
        }

        test('a CI system exchanges its token for an access token, which every server accepts', async () => {
          const { group, identity, upstream } = await newMachine();
          const { token, refreshToken, expiry } = await api.call(exchange, { aud: [server.url] }, { token: upstream });
          const { iss, sub, aud, act, exp } = decodeJwt(token);
          assert.deepEqual([iss, sub, aud], [server.url, identity, [server.url]]);
          assert.deepEqual(act, { iss: provider.issuer, sub: 'ci', aud: decodeJwt(upstream).aud });
          assert.equal(Number(expiry?.seconds), exp);
          for (const client of [api, otherApi]) {
            assert.equal((await client.call(getGroup, { uid: group }, { token })).uid, group);
            const who = await client.call(validate, {}, { token });
            assert.deepEqual([who.issuer, who.subject, who.audience], [server.url, identity, [server.url]]);
            const [entry, ...more] = who.capabilities;
            assert.deepEqual([entry?.group?.id, entry?.role?.name, more], [group, 'viewer', []]);
          }
          await rejects(
            api.call(createGroup, { parent: group, group: { name: 'sub' } }, { token }),
            Code.PERMISSION_DENIED,
          );

          const pair = await otherApi.call(exchangeRefreshToken, { aud: [server.url] }, { token: refreshToken });
          const renewed = pair.token?.token ?? '';
          assert.equal((await api.call(getGroup, { uid: group }, { token: renewed })).uid, group);
          const again = await api.call(
            exchangeRefreshToken,
            { aud: [server.url] },
            { token: pair.refreshToken?.token ?? '' },
          );
          await rejects(
            api.call(exchangeRefreshToken, { aud: [server.url] }, { token: refreshToken }),
            Code.UNAUTHENTICATED,
          );
          const last = again.refreshToken?.token ?? '';
          await rejects(
            otherApi.call(exchangeRefreshToken, { aud: [server.url] }, { token: last }),
            Code.UNAUTHENTICATED,
          );
        });

        test('a token scope limits a token, and cannot be extended by another exchange', async () => {
          const { group, upstream } = await newMachine();
          const { uid: inner } = await api.call(createGroup, { parent: group, group: { name: `inner ${++names}` } });
          const request = { aud: [server.url], scopes: [inner], cap: ['groups.list'] };
          const { token } = await api.call(exchange, request, { token: upstream });
          assert.equal((await api.call(getGroup, { uid: inner }, { token })).uid, inner);
          await rejects(api.call(getGroup, { uid: group }, { token }), Code.PERMISSION_DENIED);
          assert.deepEqual(
            (await api.call(listGroups, {}, { token })).groups.map(({ uid }) => uid),
            [inner],
          );
          const [entry] = (await api.call(validate, {}, { token })).capabilities;
          assert.deepEqual([entry?.group?.id, entry?.capabilities], [inner, ['groups.list']]);
          for (const wider of [{ scopes: [group] }, { cap: ['roles.list'] }]) {
            await rejects(api.call(exchange, { aud: [server.url], ...wider }, { token }), Code.PERMISSION_DENIED);
          }
        });

        test('an identity can be assumed only with a token that matches it', async () => {
          const { identity, upstream } = await newMachine();
          const otherMachine = await newMachine();
          const { token } = await api.call(exchange, { aud: [server.url], identity }, { token: upstream });
          assert.equal(decodeJwt(token).sub, identity);
          const assume = (uid: string) => api.call(exchange, { aud: [server.url], identity: uid }, { token: upstream });
          await rejects(assume(otherMachine.identity), Code.PERMISSION_DENIED, ({ message }) =>
            assert.match(message, /invalid "aud"/),
          );
          await rejects(assume(newUid(ROOT)), Code.PERMISSION_DENIED, ({ message }) =>
            assert.match(message, /invalid "iss"/),
          );
          const value = { awsAccount: '123456789012' };
          const aws = await api.call(createIdentity, {
            parent: server.organization,
            identity: { name: 'aws', relationship: { case: 'awsIdentity', value } },
          });
          await rejects(assume(aws.uid), Code.PERMISSION_DENIED, ({ message }) =>
            assert.match(message, /AWS identities cannot log in on this server yet/),
          );
        });

        test('validation errors name the field, and invalid tokens are rejected', async () => {
          const { upstream } = await newMachine();
          const fails = (request: object, fields: string[]) =>
            rejects(api.call(exchange, request, { token: upstream }), Code.INVALID_ARGUMENT, (error) =>
              assert.deepEqual(error.fields, fields),
            );
          await fails({}, ['aud']);
          await fails({ aud: [server.url], scopes: ['my-org'] }, ['scopes']);
          await fails({ aud: [server.url], cap: ['groups.fly'] }, ['cap']);
          await fails({ aud: [server.url], identity: 'me' }, ['identity']);
          await fails({ aud: [server.url], identityProvider: 'me' }, ['identity_provider']);
          for (const token of [undefined, 'nonsense', `${upstream.slice(0, -8)}AAAAAAAA`]) {
            await rejects(api.call(exchange, { aud: [server.url] }, { token }), Code.UNAUTHENTICATED);
            await rejects(api.call(exchangeRefreshToken, { aud: [server.url] }, { token }), Code.UNAUTHENTICATED);
          }
        });

        test('a token of an issuer without an identity provider cannot register', async () => {
          const unknownProvider = await startOidcProvider(['eve']);
          const token = await unknownProvider.token('eve', server.url);
          unknownProvider.stop();
          await rejects(api.call(register, { code: 'x' }, { token }), Code.PERMISSION_DENIED, ({ message }) =>
            assert.match(message, /no identity provider here has the issuer/),
          );
          await rejects(api.call(register, {}, { token: server.token }), Code.PERMISSION_DENIED);
          await rejects(api.call(register, {}, { token: undefined }), Code.UNAUTHENTICATED);
        });

        test('the tokens of a deleted identity are rejected', async () => {
          const { group, identity, upstream } = await newMachine();
          const { token, refreshToken } = await api.call(exchange, { aud: [server.url] }, { token: upstream });
          await otherApi.call(getGroup, { uid: group }, { token });
          await api.call(deleteIdentity, { uid: identity });
          await rejects(otherApi.call(getGroup, { uid: group }, { token }), Code.UNAUTHENTICATED);
          await rejects(
            otherApi.call(exchangeRefreshToken, { aud: [server.url] }, { token: refreshToken }),
            Code.UNAUTHENTICATED,
          );
          await rejects(otherApi.call(exchange, { aud: [server.url] }, { token }), Code.UNAUTHENTICATED);
        });

        test('a person who logs in through an identity provider has access only inside its group', async () => {
          const name = `people ${++names}`;
          const { uid: group } = await api.call(createGroup, { group: { name } });
          const { uid: inner } = await api.call(createGroup, { parent: group, group: { name } });
          const oidc = { issuer: provider.issuer, clientId: `${CLIENT}/${names}`, groupsClaim: 'groups' };
          const { uid: identityProvider } = await api.call(createIdentityProvider, {
            parent: group,
            identityProvider: {
              name,
              defaultRole: builtinRoleUid('viewer'),
              configuration: { case: 'oidc', value: oidc },
            },
          });
          const upstream = await provider.token(`alice-${wire.name.toLowerCase()}`, oidc.clientId);
          const misdirected = await provider.token('ci', 'https://another.example.com');
          await rejects(api.call(register, {}, { token: misdirected }), Code.UNAUTHENTICATED);
          const { identity, group: joined } = await api.call(register, {}, { token: upstream });
          assert.equal(joined, group);

          const request = { aud: [server.url], identityProvider };
          const { token } = await api.call(exchange, request, { token: upstream });
          assert.equal(decodeJwt(token).sub, identity);
          assert.equal((await api.call(getGroup, { uid: inner }, { token })).uid, inner);
          await rejects(api.call(exchange, { aud: [server.url] }, { token: upstream }), Code.UNAUTHENTICATED);

          // A role outside of the group does not count for logins through this provider.
          const roleBinding = { identityUid: identity, roleUid: builtinRoleUid('owner') };
          await api.call(createRoleBinding, { parent: server.organization, roleBinding });
          await rejects(api.call(getGroup, { uid: server.organization }, { token }), Code.PERMISSION_DENIED);

          // A mapping of the groups in the provider's token takes effect at the next login.
          const { uid: own } = await api.call(createGroup, { parent: group, group: { name: `own ${names}` } });
          await api.call(ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping, {
            parent: identityProvider,
            externalGroupRoleMapping: { externalGroupId: 'harbour', roleUid: builtinRoleUid('owner'), scope: own },
          });
          const { token: mapped } = await api.call(exchange, request, { token: upstream });
          assert.ok(await api.call(createGroup, { parent: own, group: { name: 'mine' } }, { token: mapped }));
          const roles = (await api.call(validate, {}, { token: mapped })).capabilities;
          assert.ok(roles.some(({ group, role }) => group?.id === own && role?.name === 'owner'));

          // Such a token cannot delete the person, and is rejected after the provider was deleted.
          await rejects(api.call(leave, { id: identity }, { token }), Code.PERMISSION_DENIED);
          await api.call(deleteIdentityProvider, { uid: identityProvider });
          await rejects(otherApi.call(getGroup, { uid: inner }, { token }), Code.UNAUTHENTICATED);
          await rejects(api.call(exchange, request, { token: upstream }), Code.PERMISSION_DENIED);
        });
      });
    }

    test('over HTTP: a request is a form, query or JSON, and a response has exactly the documented keys', async () => {
      const request = { aud: server.url, scopes: server.organization, cap: 'groups.list' };
      const form = new URLSearchParams([...Object.entries(request), ['aud', 'them']]);
      const same = { aud: [server.url, 'them'], scopes: [server.organization], cap: ['groups.list'] };
      const responses = [
        await post('/sts/exchange', server.token, form),
        await post('/sts/exchange', server.token, JSON.stringify(same), json),
        await fetch(`${server.url}/sts/exchange?${form}`, { headers: { authorization: server.token } }),
      ];
      for (const response of responses) {
        assert.equal(response.status, 200);
        assert.equal(response.headers.get('cache-control'), 'no-store');
        const body = (await response.json()) as Record<string, string>;
        assert.deepEqual(Object.keys(body).sort(), ['expiry', 'refreshToken', 'token']);
        assert.match(body.expiry ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.deepEqual(decodeJwt(body.token ?? '').aud, [server.url, 'them']);

        const renewed = await post('/sts/exchange_refresh_token', body.refreshToken ?? '', `aud=${server.url}`);
        assert.equal(renewed.status, 200);
        const pair = (await renewed.json()) as Record<string, Record<string, string>>;
        assert.deepEqual(Object.keys(pair).sort(), ['refreshToken', 'token']);
        for (const raw of Object.values(pair))
          assert.deepEqual(Object.keys(raw).sort(), ['expiry', 'refreshToken', 'token']);
      }
    });

    test('over HTTP: errors are JSON with code, message and details', async () => {
      const failures: [Response, number, Code][] = [
        [await post('/sts/exchange', server.token, ''), 400, Code.INVALID_ARGUMENT],
        [await post('/sts/exchange', server.token, '{"colour":"red"}', json), 400, Code.INVALID_ARGUMENT],
        [await post('/sts/exchange', 'nonsense', `aud=${server.url}`), 401, Code.UNAUTHENTICATED],
        [
          await post('/sts/exchange', server.token, `aud=${server.url}&identity=${newUid(ROOT)}`),
          403,
          Code.PERMISSION_DENIED,
        ],
        [await fetch(`${server.url}/sts/headless_sessions?code=x`), 400, Code.FAILED_PRECONDITION],
      ];
      for (const [response, status, code] of failures) {
        assert.equal(response.status, status);
        const body = (await response.json()) as { code: number; message: string; details: unknown[] };
        assert.equal(body.code, code);
        assert.ok(body.message.length > 0 && body.details.length > 0);
      }
    });

    test('third parties can verify access tokens with the keys from discovery', async () => {
      const discovery = (await (await fetch(`${server.url}/.well-known/openid-configuration`)).json()) as Record<
        string,
        string
      >;
      assert.equal(discovery.issuer, server.url);
      assert.equal(discovery.jwks_uri, `${server.url}/.well-known/jwks.json`);
      assert.equal(discovery.token_endpoint, `${server.url}/sts/exchange`);
      const { token } = (await (await post('/sts/exchange', server.token, 'aud=receiver')).json()) as { token: string };
      for (const url of [server.url, otherUrl]) {
        const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`));
        await jwtVerify(token, keys, { issuer: server.url, audience: 'receiver', algorithms: ['RS256'], typ: 'JWT' });
        assert.equal(
          (await keys.jwks())?.keys.some(({ kid }) => kid === decodeProtectedHeader(token).kid),
          true,
        );
      }
    });
  });
}
