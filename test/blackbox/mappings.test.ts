import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { mappedRoles } from '../../src/domains/iam/identity-providers/external-group-role-mappings.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createExternalGroupRoleMapping, getExternalGroupRoleMapping, listExternalGroupRoleMappings } =
  ExternalGroupRoleMappingsService.method;
const { deleteExternalGroupRoleMapping, batchDeleteExternalGroupRoleMappings } =
  ExternalGroupRoleMappingsService.method;
const { createGroup } = GroupsService.method;
const { createIdentityProvider } = IdentityProvidersService.method;
const { createRole, deleteRole } = RolesService.method;

const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');

for (const database of databases) {
  describe(`external group role mappings on ${database.name}`, () => {
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await startTestServer(database);
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      await store.close();
      await server.remove();
    });

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire.name.toLowerCase(), () => wire.connect(server.url, server.token)));
    }

    test('the listing index matches the stored resources', () => assertConsistent(store.reader));

    function suite(prefix: string, connect: () => Client): void {
      let api: Client;
      let org: string;
      let team: string;
      before(async () => {
        api = connect();
        org = (await newGroup(`${prefix} mappings`)).uid;
        team = (await newGroup('team', org)).uid;
      });
      after(() => api.close());

      const newGroup = (name: string, parent = '') => api.call(createGroup, { parent, group: { name } });
      const newProvider = async (parent = org): Promise<string> => {
        const value = { issuer: 'https://login.example.com', clientId: 'wharf', groupsClaim: 'groups' };
        const configuration = { case: 'oidc' as const, value };
        const identityProvider = { name: 'directory', defaultRole: VIEWER, configuration };
        return (await api.call(createIdentityProvider, { parent, identityProvider })).uid;
      };
      const map = (parent: string, externalGroupId: string, roleUid = VIEWER, scope = '') =>
        api.call(createExternalGroupRoleMapping, {
          parent,
          externalGroupRoleMapping: { externalGroupId, roleUid, scope },
        });
      const batchDelete = (parent: string, names: string[]) =>
        api.call(batchDeleteExternalGroupRoleMappings, { parent, names });

      test('a mapping can be created, read and deleted', async () => {
        const provider = await newProvider();
        const mapping = await map(provider, 'cn=Admins,dc=example', VIEWER, team);
        assert.match(mapping.uid, new RegExp(`^${provider}/[0-9a-f]{16}$`));
        assert.equal(mapping.identityProviderUid, provider);
        assert.equal(mapping.scope, team);
        assert.ok(mapping.createTime && mapping.updateTime);
        assert.deepEqual(await api.call(getExternalGroupRoleMapping, { uid: mapping.uid }), mapping);
        await api.call(deleteExternalGroupRoleMapping, { uid: mapping.uid });
        await rejects(api.call(getExternalGroupRoleMapping, { uid: mapping.uid }), Code.NOT_FOUND);
        await rejects(api.call(deleteExternalGroupRoleMapping, { uid: mapping.uid }), Code.NOT_FOUND);

        const events = await eventsAbout(store.reader, mapping.uid);
        assert.deepEqual(
          events.map(({ type, scope, extensions }) => ({ type, scope, extensions })),
          ['created', 'deleted'].map((change) => ({
            type: `dev.chainguard.api.iam.external_group_role_mappings.${change}.v1`,
            scope: org,
            extensions: { group: org, identityprovider: provider },
          })),
        );
        assert.equal(events[0]?.body?.external_group_id, 'cn=Admins,dc=example');
        assert.deepEqual(events[1]?.body, { id: mapping.uid });
      });

      test('mappings are filtered by provider and hierarchy, within the reach of the caller', async () => {
        const { uid: other } = await newGroup(`${prefix} other mappings`);
        const [one, two] = [await newProvider(), await newProvider(other)];
        const [b, a] = [await map(one, 'b'), await map(one, 'a')];
        const c = await map(two, 'c');
        const list = async (request: object) =>
          (await api.call(listExternalGroupRoleMappings, request)).externalGroupRoleMappings.map(({ uid }) => uid);
        assert.deepEqual(await list({ identityProviderUid: one }), [a.uid, b.uid].sort());
        assert.deepEqual(await list({ identityProviderUid: one, orderBy: 'external_group_id' }), [a.uid, b.uid]);
        assert.deepEqual(await list({ identityProviderUid: one, orderBy: 'create_time' }), [b.uid, a.uid]);
        assert.deepEqual(await list({ uidp: { childrenOf: two } }), [c.uid]);
        assert.deepEqual(await list({ uidp: { descendantsOf: other } }), [c.uid]);
        assert.deepEqual(await list({ uidp: { ids: [b.uid] }, identityProviderUid: one }), [b.uid]);
        for (const missing of ['nonsense', `${org}/${'0'.repeat(16)}`]) {
          await rejects(list({ identityProviderUid: missing }), Code.NOT_FOUND);
        }
        const page = await api.call(listExternalGroupRoleMappings, { identityProviderUid: one, pageSize: 1 });
        assert.equal(page.totalCount, 2n);
        assert.notEqual(page.nextPageToken, '');

        const outsider = await callerWithRole(server, 'viewer', other);
        const seen = await api.call(listExternalGroupRoleMappings, {}, { token: await outsider.token() });
        assert.deepEqual(
          seen.externalGroupRoleMappings.map(({ uid }) => uid),
          [c.uid],
        );
      });

      test('the default scope is the organization of the provider', async () => {
        assert.equal((await map(await newProvider(), 'x')).scope, org);
      });

      test('validation errors name the invalid field', async () => {
        const provider = await newProvider();
        const fields = async (externalGroupRoleMapping: object) => {
          const call = api.call(createExternalGroupRoleMapping, { parent: provider, externalGroupRoleMapping });
          return (await rejects(call, Code.INVALID_ARGUMENT)).fields;
        };
        const fine = { externalGroupId: 'fine', roleUid: VIEWER };
        assert.deepEqual(await fields({}), ['external_group_id', 'role_uid']);
        assert.deepEqual(await fields({ ...fine, externalGroupId: 'x'.repeat(256) }), ['external_group_id']);
        assert.deepEqual(await fields({ ...fine, externalGroupId: 'a\nb' }), ['external_group_id']);
        assert.deepEqual(await fields({ ...fine, roleUid: 'nonsense' }), ['role_uid']);
        assert.deepEqual(await fields({ ...fine, roleUid: '0'.repeat(40) }), ['role_uid']);
        assert.deepEqual(await fields({ ...fine, scope: 'nonsense' }), ['scope']);
        assert.deepEqual(await fields({ ...fine, scope: server.organization }), ['scope']);
        assert.deepEqual(await fields({ ...fine, scope: `${team}/${'0'.repeat(16)}` }), ['scope']);
        await rejects(map(`${org}/${'0'.repeat(16)}`, 'x'), Code.NOT_FOUND);
        await map(provider, 'ü'.repeat(255));
      });

      test('a second equal mapping is refused', async () => {
        const provider = await newProvider();
        await map(provider, 'twice');
        await rejects(map(provider, 'twice', VIEWER, org), Code.ALREADY_EXISTS);
        await map(provider, 'twice', VIEWER, team);
        await map(provider, 'twice', EDITOR);
        await map(await newProvider(), 'twice');
      });

      test('a mapped role cannot be deleted', async () => {
        const role = { name: `${prefix} mapped`, capabilities: [Capability.CAP_IAM_GROUPS_LIST] };
        const { uid: roleUid } = await api.call(createRole, { parent: org, role });
        const { uid } = await map(await newProvider(), 'x', roleUid);
        await rejects(api.call(deleteRole, { uid: roleUid }), Code.FAILED_PRECONDITION);
        await api.call(deleteExternalGroupRoleMapping, { uid });
        await api.call(deleteRole, { uid: roleUid });
      });

      test('a caller cannot map a role with capabilities that it lacks at the scope', async () => {
        const capabilities = [
          Capability.CAP_IAM_IDENTITY_PROVIDERS_CREATE,
          Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
          Capability.CAP_IAM_GROUPS_LIST,
        ];
        const role = { name: `${prefix} mapper`, capabilities };
        const { uid: roleUid } = await api.call(createRole, { parent: org, role });
        const caller = await callerWithRole(server, roleUid, org);
        const options = { token: await caller.token() };
        const parent = await newProvider();
        const attempt = (externalGroupRoleMapping: object) =>
          api.call(createExternalGroupRoleMapping, { parent, externalGroupRoleMapping }, options);
        await rejects(attempt({ externalGroupId: 'x', roleUid: VIEWER }), Code.PERMISSION_DENIED);
        await rejects(attempt({ externalGroupId: 'x', roleUid: VIEWER, scope: team }), Code.PERMISSION_DENIED);
        await attempt({ externalGroupId: 'x', roleUid, scope: team });
      });

      test('a batch deletes the existing mappings, and none of another provider', async () => {
        const [provider, other] = [await newProvider(), await newProvider()];
        const [a, b] = [await map(provider, 'a'), await map(provider, 'b')];
        const foreign = await map(other, 'a');
        for (const wrong of [foreign.uid, 'nonsense', provider, `${a.uid}/${'0'.repeat(16)}`]) {
          const error = await rejects(batchDelete(provider, [a.uid, wrong]), Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, ['names[1]']);
        }
        await api.call(getExternalGroupRoleMapping, { uid: a.uid });
        const missing = `${provider}/${'0'.repeat(16)}`;
        assert.deepEqual((await rejects(batchDelete(provider, []), Code.INVALID_ARGUMENT)).fields, ['names']);
        const many = Array<string>(201).fill(missing);
        assert.deepEqual((await rejects(batchDelete(provider, many), Code.INVALID_ARGUMENT)).fields, ['names']);

        const response = await batchDelete(provider, [b.uid, missing, a.uid, b.uid]);
        assert.equal(response.parent, provider);
        assert.deepEqual(new Set(response.externalGroupRoleMappings.map(({ uid }) => uid)), new Set([a.uid, b.uid]));
        await rejects(api.call(getExternalGroupRoleMapping, { uid: b.uid }), Code.NOT_FOUND);
        assert.deepEqual((await batchDelete(provider, [a.uid])).externalGroupRoleMappings, []);
        await api.call(getExternalGroupRoleMapping, { uid: foreign.uid });
        await rejects(batchDelete(missing, [`${missing}/${'0'.repeat(16)}`]), Code.NOT_FOUND);

        const [created, batch, ...more] = await eventsAbout(store.reader, provider);
        assert.match(created?.type ?? '', /identity_providers\.created/);
        assert.equal(batch?.type, 'dev.chainguard.api.iam.external_group_role_mappings.deleted.batch.v1');
        assert.deepEqual(batch?.extensions, { group: org, identityprovider: provider });
        assert.deepEqual(more, [], 'a batch that deletes nothing emits no event');
      });

      test('a token gets only the roles that are mapped to its groups', async () => {
        const [provider, other] = [await newProvider(), await newProvider()];
        await map(provider, 'developers', EDITOR, team);
        await map(provider, 'everybody', VIEWER);
        await map(provider, 'nobody', EDITOR);
        await map(other, 'developers', EDITOR);
        const grants = (groups: string[]) => mappedRoles(store.reader, provider, groups);
        const named = ['everybody', 'developers', 'developers', 'unknown', ...Array(120).keys().map(String)];
        const sorted = (await grants(named)).sort((a, b) => (a.group < b.group ? -1 : 1));
        assert.deepEqual(sorted, [
          { group: org, roleUid: VIEWER },
          { group: team, roleUid: EDITOR },
        ]);
        assert.deepEqual(await grants([]), []);
        assert.deepEqual(await grants(['Everybody', 'every']), []);
      });
    }
  });
}
