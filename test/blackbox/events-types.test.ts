import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { AccountAssociationsService } from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { methodTable, v2Files } from '../../src/contract/method-table.ts';
import { builtinUid, callerWith, stranger } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { ociClient, pushImage } from '../support/oci-client.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createVerify, startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroup, updateGroup, deleteGroup } = GroupsService.method;
const { updateIdentity, deleteIdentity, updateIdentityMetadata } = IdentitiesService.method;
const { createRole, updateRole, deleteRole } = RolesService.method;
const { createRoleBinding, updateRoleBinding, deleteRoleBinding, batchCreateRoleBindings } = RoleBindingsService.method;
const { createIdentityProvider, updateIdentityProvider, deleteIdentityProvider } = IdentityProvidersService.method;
const { generateScimToken, regenerateScimToken, revokeScimToken, setScimEnabled } = IdentityProvidersService.method;
const mappings = ExternalGroupRoleMappingsService.method;
const associations = AccountAssociationsService.method;
const { createGroupInvite, deleteGroupInvite } = GroupInvitesService.method;
const { createRepo, updateRepo, updateRepoReadme, deleteRepo, listRepos } = ReposService.method;
const { createTag, deleteTag } = TagsService.method;
const { createSubscription, deleteSubscription } = SubscriptionsService.method;

/** What there is to do something with. */
interface World {
  readonly server: TestServer;
  readonly api: Client;
  /** A group that nobody else uses. */
  readonly group: string;
  /** What the names of its images begin with. */
  readonly path: string;
}

/** Does what an event tells of, and answers the subject of the event. */
type Perform = (world: World) => Promise<string>;

const VIEWER = builtinUid('viewer');
const EDITOR = builtinUid('editor');

const newIdentity = async ({ server, group }: World) => (await stranger(server, group)).uid;
const newRole = async ({ api, group }: World) =>
  (await api.call(createRole, { parent: group, role: { name: 'reader', capabilities: [101] } })).uid;
const bind = async (world: World) => {
  const roleBinding = { identityUid: await newIdentity(world), roleUid: VIEWER };
  return (await world.api.call(createRoleBinding, { parent: world.group, roleBinding })).uid;
};
const newProvider = async ({ api, group }: World) => {
  const value = { issuer: 'https://login.example.com', clientId: 'wharf', clientSecret: 'hush', groupsClaim: 'groups' };
  const identityProvider = { name: 'directory', defaultRole: VIEWER, configuration: { case: 'oidc' as const, value } };
  return (await api.call(createIdentityProvider, { parent: group, identityProvider })).uid;
};
const withScim = async (world: World) => {
  const identityProviderUid = await newProvider(world);
  const { etag } = await world.api.call(generateScimToken, { identityProviderUid });
  return { identityProviderUid, etag };
};
const map = async (world: World) => {
  const externalGroupRoleMapping = { externalGroupId: 'admins', roleUid: VIEWER, scope: world.group };
  const parent = await newProvider(world);
  return (await world.api.call(mappings.createExternalGroupRoleMapping, { parent, externalGroupRoleMapping })).uid;
};
const associate = async ({ api, group }: World) => {
  const accountAssociation = { name: 'clouds', amazon: { account: '123456789012' } };
  return (await api.call(associations.createAccountAssociation, { parent: group, accountAssociation })).uid;
};
const invite = async ({ api, group }: World) =>
  (await api.call(createGroupInvite, { parent: group, groupInvite: { roleUid: VIEWER, ttl: { seconds: 3600n } } })).uid;
const newRepo = async ({ api, group }: World) =>
  (await api.call(createRepo, { parent: group, repo: { name: 'app' } })).uid;
const pushed = async ({ api, server, group, path }: World) => {
  const registry = ociClient(server.url, `Bearer ${server.token}`);
  const { digest } = await pushImage(registry, `${path}/app`, 'v1');
  await registry.send('GET', `/v2/${path}/app/manifests/v1`);
  registry.close();
  const { repos } = await api.call(listRepos, { uidp: { childrenOf: group } });
  return { repo: repos[0]?.uid ?? '', digest };
};
const newTag = async (world: World) => {
  const { repo, digest } = await pushed(world);
  return (await world.api.call(createTag, { parent: repo, tag: { name: 'v2', digest } })).uid;
};
const done = async (work: Promise<unknown>, subject: string): Promise<string> => {
  await work;
  return subject;
};

/** By the method whose event it is. */
const performers: Readonly<Record<string, Perform>> = {
  CreateGroup: async ({ api, group }) => (await api.call(createGroup, { parent: group, group: { name: 'child' } })).uid,
  UpdateGroup: ({ api, group }) => done(api.call(updateGroup, { group: { uid: group, description: 'new' } }), group),
  DeleteGroup: ({ api, group }) => done(api.call(deleteGroup, { uid: group }), group),
  CreateIdentity: newIdentity,
  UpdateIdentity: async (world) => {
    const uid = await newIdentity(world);
    return done(world.api.call(updateIdentity, { identity: { uid, description: 'new' } }), uid);
  },
  DeleteIdentity: async (world) => {
    const uid = await newIdentity(world);
    return done(world.api.call(deleteIdentity, { uid }), uid);
  },
  UpdateIdentityMetadata: async ({ server, api, group }) => {
    const caller = await callerWith(server, 'viewer', group);
    const token = await caller.token();
    return done(api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme' } }, { token }), caller.uid);
  },
  CreateRole: newRole,
  UpdateRole: async (world) => {
    const uid = await newRole(world);
    return done(world.api.call(updateRole, { role: { uid, description: 'new' } }), uid);
  },
  DeleteRole: async (world) => {
    const uid = await newRole(world);
    return done(world.api.call(deleteRole, { uid }), uid);
  },
  CreateRoleBinding: bind,
  UpdateRoleBinding: async (world) => {
    const uid = await bind(world);
    return done(world.api.call(updateRoleBinding, { roleBinding: { uid, roleUid: EDITOR } }), uid);
  },
  DeleteRoleBinding: async (world) => {
    const uid = await bind(world);
    return done(world.api.call(deleteRoleBinding, { uid }), uid);
  },
  BatchCreateRoleBindings: async (world) => {
    const roleBinding = { identityUid: await newIdentity(world), roleUid: VIEWER };
    const requests = [{ parent: world.group, roleBinding }];
    return done(world.api.call(batchCreateRoleBindings, { parent: world.group, requests }), world.group);
  },
  CreateIdentityProvider: newProvider,
  UpdateIdentityProvider: async (world) => {
    const uid = await newProvider(world);
    return done(world.api.call(updateIdentityProvider, { identityProvider: { uid, description: 'new' } }), uid);
  },
  DeleteIdentityProvider: async (world) => {
    const uid = await newProvider(world);
    return done(world.api.call(deleteIdentityProvider, { uid }), uid);
  },
  GenerateScimToken: async (world) => (await withScim(world)).identityProviderUid,
  RegenerateScimToken: async (world) => {
    const provider = await withScim(world);
    return done(world.api.call(regenerateScimToken, provider), provider.identityProviderUid);
  },
  RevokeScimToken: async (world) => {
    const { identityProviderUid } = await withScim(world);
    return done(world.api.call(revokeScimToken, { identityProviderUid }), identityProviderUid);
  },
  SetScimEnabled: async (world) => {
    const provider = await withScim(world);
    return done(world.api.call(setScimEnabled, { ...provider, enabled: false }), provider.identityProviderUid);
  },
  CreateExternalGroupRoleMapping: map,
  DeleteExternalGroupRoleMapping: async (world) => {
    const uid = await map(world);
    return done(world.api.call(mappings.deleteExternalGroupRoleMapping, { uid }), uid);
  },
  BatchDeleteExternalGroupRoleMappings: async (world) => {
    const uid = await map(world);
    const parent = uid.slice(0, uid.lastIndexOf('/'));
    return done(world.api.call(mappings.batchDeleteExternalGroupRoleMappings, { parent, names: [uid] }), parent);
  },
  CreateAccountAssociation: associate,
  UpdateAccountAssociation: async (world) => {
    const uid = await associate(world);
    const accountAssociation = { uid, description: 'new' };
    return done(world.api.call(associations.updateAccountAssociation, { accountAssociation }), uid);
  },
  DeleteAccountAssociation: async (world) => {
    const uid = await associate(world);
    return done(world.api.call(associations.deleteAccountAssociation, { uid }), uid);
  },
  CreateGroupInvite: invite,
  DeleteGroupInvite: async (world) => {
    const uid = await invite(world);
    return done(world.api.call(deleteGroupInvite, { uid }), uid);
  },
  AcceptTerms: ({ api, group }) =>
    done(api.call(TermsService.method.acceptTerms, { group, documentIds: ['sfdpa.v1'] }), group),
  CreateRepo: newRepo,
  UpdateRepo: async (world) => {
    const uid = await newRepo(world);
    return done(world.api.call(updateRepo, { repo: { uid, description: 'new' } }), uid);
  },
  UpdateRepoReadme: async (world) => {
    const uid = await newRepo(world);
    return done(world.api.call(updateRepoReadme, { repoReadme: { uid, content: '# app' } }), uid);
  },
  DeleteRepo: async (world) => {
    const uid = await newRepo(world);
    return done(world.api.call(deleteRepo, { uid }), uid);
  },
  CreateTag: newTag,
  DeleteTag: async (world) => {
    const uid = await newTag(world);
    return done(world.api.call(deleteTag, { uid }), uid);
  },
  CreateSubscription: async ({ api, group }) =>
    (await api.call(createSubscription, { parent: group, subscription: { sink: 'https://sink.invalid/' } })).uid,
  DeleteSubscription: async ({ api, group }) => {
    const subscription = { sink: 'https://sink.invalid/' };
    const { uid } = await api.call(createSubscription, { parent: group, subscription });
    return done(api.call(deleteSubscription, { uid }), uid);
  },
};

const emitting = methodTable(v2Files).filter(({ event }) => event !== undefined);

test('every event of the contract is tried here', () => {
  assert.equal(new Set(emitting.map(({ event }) => event?.type)).size, 37);
  assert.deepEqual(Object.keys(performers).sort(), emitting.map(({ desc }) => desc.name).sort());
});

describe('what arrives', () => {
  let server: TestServer;
  let api: Client;
  let sink: TestSink;
  let verify: ReturnType<typeof createVerify>;
  let groups = 0;
  before(async () => {
    const [database = assert.fail()] = databases;
    server = await startTestServer(database, { env: { WHARF_ALLOW_INSECURE_SINKS: 'true' } });
    api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    sink = await startSink();
    const { uid, secret } = await subscribe('REST', server, server.organization, sink.url);
    verify = createVerify({ issuer: server.url, subscription: uid, secret });
  });
  after(async () => {
    api.close();
    await server.remove();
    await sink.close();
  });

  const newWorld = async (): Promise<World> => {
    const group = { name: `world-${++groups}` };
    const { uid } = await api.call(createGroup, { parent: server.organization, group });
    return { server, api, group: uid, path: `my-org/${group.name}` };
  };
  const arrived = async (type: string, subject: string) => {
    const find = () =>
      sink.received.find(({ attributes }) => attributes.type === type && attributes.subject === subject);
    const found = await until(
      async () => ({ type, subject, request: find() }),
      ({ request }) => request !== undefined,
    );
    return verify(found.request ?? assert.fail());
  };

  for (const { event: spec, desc } of emitting) {
    if (!spec) continue;
    test(`${desc.name}: ${spec.type}`, async () => {
      const subject = await (performers[desc.name] ?? assert.fail('no test performs it'))(await newWorld());
      if (spec.audience === 'internal') {
        const [recorded] = (await withStore(server, (store) => eventsAbout(store.reader, subject))).slice(-1);
        assert.equal(recorded?.type, spec.type);
        // Whatever was written before has arrived once this has.
        const { group } = await newWorld();
        await arrived('dev.chainguard.api.iam.group.created.v1', group);
        assert.ok(!sink.received.some(({ attributes }) => attributes.type === spec.type), 'nobody hears of it');
        return;
      }
      const event = await arrived(spec.type, subject);
      for (const extension of spec.extensions) assert.equal(typeof event[extension], 'string', extension);
      assert.equal(event.audience, 'customer');
      assert.ok(event.data?.actor?.subject);
      const { data } = event;
      const hasNone = desc.name === 'DeleteAccountAssociation';
      assert.equal(data?.body === undefined, hasNone, 'a body, unless it is withheld');
      const bodies = [desc.input.typeName, desc.output.typeName];
      if (!hasNone) assert.ok(bodies.includes(String(event.bodytype)), String(event.bodytype));
      assert.doesNotMatch(JSON.stringify(data), /hush|cgscim_/, 'secrets are left out');
    });
  }

  // What the contract does not describe: it happens at the door of the registry.
  test('pushes and pulls', async () => {
    const world = await newWorld();
    const { repo } = await pushed(world);
    for (const type of ['dev.chainguard.registry.push.v1', 'dev.chainguard.registry.pull.v1']) {
      const { data, group } = await arrived(type, repo);
      assert.equal(group, world.group);
      assert.equal(data?.body?.repo_id, repo);
      assert.match(String(data?.body?.digest), /^sha256:[0-9a-f]{64}$/);
    }
  });
});
