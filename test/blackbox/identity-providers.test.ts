import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { open, sealingKey } from '../../src/base/secretbox.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  IdentityProvider_SCIM_CredentialState as CredentialState,
  type IdentityProvider_OIDCSchema,
  IdentityProvidersService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { IdentityProviders as V1IdentityProviders } from '../../src/contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import { clientSecretContext, identityProviders } from '../../src/domains/iam/identity-providers/identity-providers.ts';
import { find, findReferring } from '../../src/resource/read.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { assertNotStored, capturedLog, eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createIdentityProvider, getIdentityProvider, listIdentityProviders, updateIdentityProvider } =
  IdentityProvidersService.method;
const { deleteIdentityProvider } = IdentityProvidersService.method;
const { createGroup, deleteGroup } = GroupsService.method;
const { createRole, deleteRole } = RolesService.method;
const { createExternalGroupRoleMapping, getExternalGroupRoleMapping } = ExternalGroupRoleMappingsService.method;

const SECRET = 'the-client-secret-that-nobody-reads';
const ISSUER = 'https://login.example.com/tenant';
const VIEWER = builtinRoleUid('viewer');
const MANAGER = [
  Capability.CAP_IAM_GROUPS_LIST,
  Capability.CAP_IAM_IDENTITY_PROVIDERS_CREATE,
  Capability.CAP_IAM_IDENTITY_PROVIDERS_UPDATE,
  Capability.CAP_IAM_IDENTITY_PROVIDERS_LIST,
  Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
];

const OIDC_KEYS = ['additional_scopes', 'client_id', 'groups_claim', 'issuer', 'pkce_enabled'];

type Oidc = MessageInitShape<typeof IdentityProvider_OIDCSchema>;

for (const database of databases) {
  describe(`identity providers on ${database.name}`, () => {
    const { log, lines } = capturedLog();
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await startTestServer(database, { log });
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      await store.close();
      await server.remove();
    });

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire.name.toLowerCase(), () => wire.connect(server.url, server.token)));
    }

    test('no secret is stored in plaintext or logged', async () => {
      await assertNotStored(store.reader, [SECRET]);
      assert.ok(lines.length > 0);
      assert.ok(!lines.join('').includes(SECRET));
    });

    test('the listing index matches the stored resources', () => assertConsistent(store.reader));

    function suite(prefix: string, connect: () => Client): void {
      let api: Client;
      let org: string;
      before(async () => {
        api = connect();
        const group = { name: `${prefix} identity providers` };
        org = (await api.call(createGroup, { group })).uid;
      });
      after(() => api.close());

      const configured = (value: Oidc = {}) => ({
        case: 'oidc' as const,
        value: { issuer: ISSUER, clientId: 'wharf', clientSecret: SECRET, ...value },
      });
      const make = (name: string, oidc: Oidc = {}, defaultRole = VIEWER, parent = org) =>
        api.call(createIdentityProvider, {
          parent,
          identityProvider: { name, defaultRole, configuration: configured(oidc) },
        });
      const patch = (uid: string, oidc: Oidc, paths: string[]) =>
        api.call(updateIdentityProvider, {
          identityProvider: { uid, configuration: { case: 'oidc', value: oidc } },
          updateMask: { paths },
        });
      const newRole = (name: string, capabilities: Capability[], parent = org) =>
        api.call(createRole, { parent, role: { name: `${prefix} ${name}`, capabilities } });

      /** Returns the stored client secret of a provider, decrypted with the key in the data directory. */
      const secretOf = async (uid: string): Promise<string | undefined> => {
        const sealed = (await find(store.reader, identityProviders, uid))?.state?.clientSecret;
        if (sealed === undefined) return undefined;
        const key = Buffer.from(await readFile(join(server.dataLocation.dataDir, 'master.key'), 'utf8'), 'base64');
        return open(sealingKey(key), String(sealed), clientSecretContext(uid)).toString();
      };

      test('a provider belongs to an organization', async () => {
        const { uid: parent } = await api.call(createGroup, { parent: org, group: { name: 'not an organization' } });
        for (const version of ['v2', 'v2beta1']) {
          const id = `chainguard.platform.iam.${version}.IdentityProvidersService/CreateIdentityProvider`;
          const identityProvider = { name: 'below', defaultRole: VIEWER, configuration: configured() };
          const call = api.call(createIdentityProvider, { parent, identityProvider }, { token: server.token, id });
          const error = await rejects(call, Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, ['parent']);
          assert.ok(error.message.includes(org), error.message);
        }
        const v1 = api.call(V1IdentityProviders.method.create, {
          parentId: parent,
          identityProvider: {
            name: 'below',
            defaultRole: VIEWER,
            configuration: { case: 'oidc', value: { issuer: ISSUER, clientId: 'wharf' } },
          },
        });
        assert.deepEqual((await rejects(v1, Code.INVALID_ARGUMENT)).fields, ['parent_id']);
      });

      test('a provider can be created, read, listed, updated and deleted, and never shows its secret', async () => {
        const provider = await make('life', { additionalScopes: ['email'], groupsClaim: 'groups', pkceEnabled: true });
        assert.match(provider.uid, new RegExp(`^${org}/[0-9a-f]{16}$`));
        assert.deepEqual(provider.createTime, provider.updateTime);
        const oidc = provider.configuration.value;
        assert.equal(oidc?.issuer, ISSUER);
        assert.equal(oidc?.clientSecret, '');
        assert.deepEqual(oidc?.additionalScopes, ['email']);
        assert.equal(provider.scim?.credentialState, CredentialState.NOT_ISSUED);
        assert.equal(provider.scim?.endpointUrl, `${server.url}/scim/v2/${provider.uid}`);

        assert.deepEqual(await api.call(getIdentityProvider, { uid: provider.uid }), provider);
        const listed = await api.call(listIdentityProviders, { uidp: { childrenOf: org }, name: 'life' });
        assert.deepEqual(listed.identityProviders, [provider]);
        assert.equal(listed.totalCount, 1n);

        const changed = await api.call(updateIdentityProvider, {
          identityProvider: { uid: provider.uid, name: 'renamed', description: 'not in the mask' },
          updateMask: { paths: ['name'] },
        });
        assert.equal(changed.name, 'renamed');
        assert.equal(changed.description, '');
        assert.deepEqual(changed.configuration, provider.configuration);
        assert.equal(await secretOf(provider.uid), SECRET);

        await api.call(deleteIdentityProvider, { uid: provider.uid });
        await rejects(api.call(getIdentityProvider, { uid: provider.uid }), Code.NOT_FOUND);

        const events = await eventsAbout(store.reader, provider.uid);
        const type = (change: string) => `dev.chainguard.api.iam.identity_providers.${change}.v1`;
        assert.deepEqual(
          events.map((event) => event.type),
          [type('created'), type('updated'), type('deleted')],
        );
        for (const { scope, extensions } of events)
          assert.deepEqual({ scope, extensions }, { scope: org, extensions: { group: org } });
        assert.equal(events[0]?.bodyType, 'chainguard.platform.iam.CreateIdentityProviderRequest');
        const created = events[0]?.body?.identity_provider as { oidc: object };
        assert.deepEqual(Object.keys(created.oidc).sort(), OIDC_KEYS);
        assert.deepEqual(events[2]?.body, { id: provider.uid });
      });

      test('identity providers are listed in order, filtered by hierarchy, and found by issuer', async () => {
        const { uid: group } = await api.call(createGroup, { group: { name: `${prefix} for lists` } });
        const issuer = `https://${prefix}.example.com`;
        const [b, a] = [await make('bbb', { issuer }, VIEWER, group), await make('aaa', {}, VIEWER, group)];
        const list = async (request: object) =>
          (await api.call(listIdentityProviders, request)).identityProviders.map(({ uid }) => uid);
        const uidp = { descendantsOf: group };
        assert.deepEqual(await list({ uidp, orderBy: 'name' }), [a.uid, b.uid]);
        assert.deepEqual(await list({ uidp, orderBy: 'created_at' }), [b.uid, a.uid]);
        assert.deepEqual(await list({ uidp: { ids: [a.uid] } }), [a.uid]);
        assert.deepEqual(await findReferring(store.reader, identityProviders, 'issuer', issuer), [b.uid]);
        const error = await rejects(api.call(deleteGroup, { uid: group }), Code.FAILED_PRECONDITION);
        assert.match(error.message, /cannot delete group with child identity providers/);
      });

      test('validation errors name the invalid field', async () => {
        const bad = async (identityProvider: object, ...fields: string[]) => {
          const call = api.call(createIdentityProvider, { parent: org, identityProvider });
          assert.deepEqual((await rejects(call, Code.INVALID_ARGUMENT)).fields, fields);
        };
        const fine = { name: 'fine', defaultRole: VIEWER, configuration: configured() };
        await bad({}, 'name', 'default_role', 'oidc');
        await bad({ ...fine, name: 'ab' }, 'name');
        await bad({ ...fine, name: 'Upper' }, 'name');
        await bad({ ...fine, name: 'x'.repeat(64) }, 'name');
        await bad({ ...fine, description: 'two\nlines' }, 'description');
        await bad({ ...fine, configuration: { case: 'oidc', value: {} } }, 'oidc.issuer', 'oidc.client_id');
        const badOidc = (value: Oidc, field: string) => bad({ ...fine, configuration: configured(value) }, field);
        await badOidc({ issuer: 'login.example.com' }, 'oidc.issuer');
        await badOidc({ issuer: 'http://login.example.com' }, 'oidc.issuer');
        await badOidc({ issuer: 'https://user@login.example.com' }, 'oidc.issuer');
        await badOidc({ issuer: 'https://login.example.com/?q' }, 'oidc.issuer');
        await badOidc({ clientId: 'x'.repeat(256) }, 'oidc.client_id');
        await badOidc({ clientSecret: 'x'.repeat(4097) }, 'oidc.client_secret');
        await badOidc({ groupsClaim: 'a\u0001' }, 'oidc.groups_claim');
        await badOidc({ additionalScopes: ['fine', 'not fine'] }, 'oidc.additional_scopes[1]');
        await badOidc({ additionalScopes: Array(51).fill('x') }, 'oidc.additional_scopes');
        await badOidc({ issuer: 'http://127.0.0.1:9000' }, 'oidc.issuer');
      });

      test('the default role must exist at the organization, and cannot be deleted', async () => {
        const refused = async (role: string) =>
          assert.deepEqual((await rejects(make('roles', {}, role), Code.INVALID_ARGUMENT)).fields, ['default_role']);
        await refused('nonsense');
        await refused('0'.repeat(40));
        await refused(`${org}/${'0'.repeat(16)}`);
        const { uid: below } = await api.call(createGroup, { parent: org, group: { name: 'below' } });
        const foreign = await newRole('foreign', [Capability.CAP_IAM_GROUPS_LIST], below);
        await refused(foreign.uid);

        const own = await newRole('own', [Capability.CAP_IAM_GROUPS_LIST]);
        const provider = await make('roles', {}, own.uid);
        await rejects(api.call(deleteRole, { uid: own.uid }), Code.FAILED_PRECONDITION);
        await api.call(updateIdentityProvider, { identityProvider: { uid: provider.uid, defaultRole: VIEWER } });
        await api.call(deleteRole, { uid: own.uid });
      });

      test('a caller cannot set a default role with capabilities that it lacks', async () => {
        const role = await newRole('provider manager', MANAGER);
        const caller = await callerWithRole(server, role.uid, org);
        const options = { token: await caller.token() };
        const as = (defaultRole: string) =>
          api.call(
            createIdentityProvider,
            { parent: org, identityProvider: { name: 'escalation', defaultRole, configuration: configured() } },
            options,
          );
        await rejects(as(VIEWER), Code.PERMISSION_DENIED, (error) => assert.match(error.message, /you cannot grant/));
        const { uid } = await as(role.uid);
        const raise = { identityProvider: { uid, defaultRole: VIEWER } };
        await rejects(api.call(updateIdentityProvider, raise, options), Code.PERMISSION_DENIED);
        await api.call(updateIdentityProvider, { identityProvider: { uid, description: 'harmless' } }, options);

        // A new issuer would grant the default role to other people.
        const owned = await make('of an owner');
        const changeIssuer = {
          identityProvider: { uid: owned.uid, configuration: configured({ issuer: 'https://evil.example' }) },
        };
        await rejects(api.call(updateIdentityProvider, changeIssuer, options), Code.PERMISSION_DENIED);
      });

      test('a caller that could not create the mappings of a provider cannot change whom they apply to', async () => {
        const role = await newRole('mapping manager', MANAGER);
        const caller = await callerWithRole(server, role.uid, org);
        const options = { token: await caller.token() };
        const { uid } = await make('mapped', { groupsClaim: 'groups' }, role.uid);
        await api.call(createExternalGroupRoleMapping, {
          parent: uid,
          externalGroupRoleMapping: { externalGroupId: 'admins', roleUid: VIEWER },
        });
        const change = (oidc: Oidc) =>
          api.call(
            updateIdentityProvider,
            { identityProvider: { uid, configuration: { case: 'oidc', value: oidc } } },
            options,
          );
        await rejects(change({ issuer: 'https://evil.example' }), Code.PERMISSION_DENIED);
        await rejects(change({ clientId: 'another' }), Code.PERMISSION_DENIED);
        await rejects(change({ groupsClaim: 'nickname' }), Code.PERMISSION_DENIED);
        await change({ pkceEnabled: true });
      });

      test('an update keeps the secret unless it sets a new one or names it in the mask', async () => {
        const { uid } = await make('secrets');
        const fresh = `${SECRET}-2`;
        await patch(uid, { clientId: 'another' }, ['oidc.client_id']);
        assert.equal(await secretOf(uid), SECRET);
        await patch(uid, { issuer: ISSUER, clientId: 'whole' }, ['oidc']);
        assert.equal(await secretOf(uid), SECRET);
        const provider = await api.call(getIdentityProvider, { uid });
        await api.call(updateIdentityProvider, { identityProvider: provider, updateMask: { paths: ['*'] } });
        assert.equal(await secretOf(uid), SECRET);
        const response = await patch(uid, { clientSecret: fresh }, ['oidc.client_secret']);
        assert.equal(response.configuration.value?.clientSecret, '');
        assert.equal(await secretOf(uid), fresh);
        await patch(uid, {}, ['oidc.client_secret']);
        assert.equal(await secretOf(uid), undefined);
      });

      test('a change of the issuer deletes the secret', async () => {
        const { uid } = await make('moved');
        await patch(uid, { issuer: 'https://elsewhere.example' }, ['oidc.issuer']);
        assert.equal(await secretOf(uid), undefined);
        await patch(uid, { issuer: ISSUER, clientId: 'wharf', clientSecret: SECRET }, ['oidc']);
        assert.equal(await secretOf(uid), SECRET);
      });

      test('a provider that was read can be sent back in an update', async () => {
        const provider = await make('echo');
        const echo = { ...provider, description: 'echoed', scim: { ...provider.scim, enabled: true, etag: 'other' } };
        const changed = await api.call(updateIdentityProvider, { identityProvider: echo as never });
        assert.equal(changed.description, 'echoed');
        assert.deepEqual(changed.scim, provider.scim);
        await api.call(createIdentityProvider, { parent: org, identityProvider: provider });
      });

      test('the correlation rule cannot be changed', async () => {
        const { uid } = await make('correlation', { correlationRule: CorrelationRule.SUB_EQUALS_EXTERNAL_ID });
        const other = { issuer: ISSUER, clientId: 'wharf', correlationRule: CorrelationRule.OID_EQUALS_EXTERNAL_ID };
        for (const path of ['oidc', 'oidc.correlation_rule']) {
          const error = await rejects(patch(uid, other, [path]), Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, ['oidc.correlation_rule']);
        }
        const same = await patch(uid, { issuer: ISSUER, clientId: 'wharf' }, ['oidc']);
        assert.equal(same.configuration.value?.correlationRule, CorrelationRule.SUB_EQUALS_EXTERNAL_ID);
      });

      test('deleting an identity provider deletes its mappings', async () => {
        const { uid } = await make('cascade');
        const mapping = await api.call(createExternalGroupRoleMapping, {
          parent: uid,
          externalGroupRoleMapping: { externalGroupId: 'some', roleUid: VIEWER },
        });
        await api.call(deleteIdentityProvider, { uid });
        await rejects(api.call(getExternalGroupRoleMapping, { uid: mapping.uid }), Code.NOT_FOUND);
      });
    }
  });
}
