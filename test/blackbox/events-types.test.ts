import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { rootOf } from '../../src/base/uid.ts';
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
import { v2Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { ociClient, pushImage } from '../support/oci-client.ts';
import { pollUntil } from '../support/poll-until.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createDeliveryVerifier, startSink, type TestSink } from '../support/sink.ts';
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

/** The server and the group that a method is called with. */
interface EmitContext {
  readonly server: TestServer;
  readonly api: Client;
  /** A group that no other test uses. */
  readonly group: string;
  /** The prefix of the names of its images. */
  readonly path: string;
}

/** Calls the method of an event, and returns the subject of the event. */
type EmitEvent = (context: EmitContext) => Promise<string>;

const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');

const newIdentity = async ({ server, group }: EmitContext) => (await callerWithoutRole(server, group)).uid;
const newRole = async ({ api, group }: EmitContext) =>
  (await api.call(createRole, { parent: group, role: { name: 'reader', capabilities: [101] } })).uid;
const bind = async (context: EmitContext) => {
  const roleBinding = { identityUid: await newIdentity(context), roleUid: VIEWER };
  return (await context.api.call(createRoleBinding, { parent: context.group, roleBinding })).uid;
};
const newProvider = async ({ api, group }: EmitContext) => {
  const value = { issuer: 'https://login.example.com', clientId: 'wharf', clientSecret: 'hush', groupsClaim: 'groups' };
  const identityProvider = { name: 'directory', defaultRole: VIEWER, configuration: { case: 'oidc' as const, value } };
  return (await api.call(createIdentityProvider, { parent: rootOf(group), identityProvider })).uid;
};
const withScim = async (context: EmitContext) => {
  const identityProviderUid = await newProvider(context);
  const { etag } = await context.api.call(generateScimToken, { identityProviderUid });
  return { identityProviderUid, etag };
};
const map = async (context: EmitContext) => {
  const externalGroupRoleMapping = { externalGroupId: 'admins', roleUid: VIEWER, scope: context.group };
  const parent = await newProvider(context);
  return (await context.api.call(mappings.createExternalGroupRoleMapping, { parent, externalGroupRoleMapping })).uid;
};
const associate = async ({ api, group }: EmitContext) => {
  const accountAssociation = { name: 'clouds', amazon: { account: '123456789012' } };
  return (await api.call(associations.createAccountAssociation, { parent: group, accountAssociation })).uid;
};
const invite = async ({ api, group }: EmitContext) =>
  (await api.call(createGroupInvite, { parent: group, groupInvite: { roleUid: VIEWER, ttl: { seconds: 3600n } } })).uid;
const newRepo = async ({ api, group }: EmitContext) =>
  (await api.call(createRepo, { parent: group, repo: { name: 'app' } })).uid;
const pushed = async ({ api, server, group, path }: EmitContext) => {
  const registry = ociClient(server.url, `Bearer ${server.token}`);
  const { digest } = await pushImage(registry, `${path}/app`, 'v1');
  await registry.send('GET', `/v2/${path}/app/manifests/v1`);
  registry.close();
  const { repos } = await api.call(listRepos, { uidp: { childrenOf: group } });
  return { repo: repos[0]?.uid ?? '', digest };
};
const newTag = async (context: EmitContext) => {
  const { repo, digest } = await pushed(context);
  return (await context.api.call(createTag, { parent: repo, tag: { name: 'v2', digest } })).uid;
};
const subjectAfter = async (work: Promise<unknown>, subject: string): Promise<string> => {
  await work;
  return subject;
};

/** By the name of the method. */
const emitters: Readonly<Record<string, EmitEvent>> = {
  CreateGroup: async ({ api, group }) => (await api.call(createGroup, { parent: group, group: { name: 'child' } })).uid,
  UpdateGroup: ({ api, group }) =>
    subjectAfter(api.call(updateGroup, { group: { uid: group, description: 'new' } }), group),
  DeleteGroup: ({ api, group }) => subjectAfter(api.call(deleteGroup, { uid: group }), group),
  CreateIdentity: newIdentity,
  UpdateIdentity: async (context) => {
    const uid = await newIdentity(context);
    return subjectAfter(context.api.call(updateIdentity, { identity: { uid, description: 'new' } }), uid);
  },
  DeleteIdentity: async (context) => {
    const uid = await newIdentity(context);
    return subjectAfter(context.api.call(deleteIdentity, { uid }), uid);
  },
  UpdateIdentityMetadata: async ({ server, api, group }) => {
    const caller = await callerWithRole(server, 'viewer', group);
    const token = await caller.token();
    return subjectAfter(
      api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme' } }, { token }),
      caller.uid,
    );
  },
  CreateRole: newRole,
  UpdateRole: async (context) => {
    const uid = await newRole(context);
    return subjectAfter(context.api.call(updateRole, { role: { uid, description: 'new' } }), uid);
  },
  DeleteRole: async (context) => {
    const uid = await newRole(context);
    return subjectAfter(context.api.call(deleteRole, { uid }), uid);
  },
  CreateRoleBinding: bind,
  UpdateRoleBinding: async (context) => {
    const uid = await bind(context);
    return subjectAfter(context.api.call(updateRoleBinding, { roleBinding: { uid, roleUid: EDITOR } }), uid);
  },
  DeleteRoleBinding: async (context) => {
    const uid = await bind(context);
    return subjectAfter(context.api.call(deleteRoleBinding, { uid }), uid);
  },
  BatchCreateRoleBindings: async (context) => {
    const roleBinding = { identityUid: await newIdentity(context), roleUid: VIEWER };
    const requests = [{ parent: context.group, roleBinding }];
    return subjectAfter(context.api.call(batchCreateRoleBindings, { parent: context.group, requests }), context.group);
  },
  CreateIdentityProvider: newProvider,
  UpdateIdentityProvider: async (context) => {
    const uid = await newProvider(context);
    return subjectAfter(
      context.api.call(updateIdentityProvider, { identityProvider: { uid, description: 'new' } }),
      uid,
    );
  },
  DeleteIdentityProvider: async (context) => {
    const uid = await newProvider(context);
    return subjectAfter(context.api.call(deleteIdentityProvider, { uid }), uid);
  },
  GenerateScimToken: async (context) => (await withScim(context)).identityProviderUid,
  RegenerateScimToken: async (context) => {
    const provider = await withScim(context);
    return subjectAfter(context.api.call(regenerateScimToken, provider), provider.identityProviderUid);
  },
  RevokeScimToken: async (context) => {
    const { identityProviderUid } = await withScim(context);
    return subjectAfter(context.api.call(revokeScimToken, { identityProviderUid }), identityProviderUid);
  },
  SetScimEnabled: async (context) => {
    const provider = await withScim(context);
    return subjectAfter(
      context.api.call(setScimEnabled, { ...provider, enabled: false }),
      provider.identityProviderUid,
    );
  },
  CreateExternalGroupRoleMapping: map,
  DeleteExternalGroupRoleMapping: async (context) => {
    const uid = await map(context);
    return subjectAfter(context.api.call(mappings.deleteExternalGroupRoleMapping, { uid }), uid);
  },
  BatchDeleteExternalGroupRoleMappings: async (context) => {
    const uid = await map(context);
    const parent = uid.slice(0, uid.lastIndexOf('/'));
    return subjectAfter(
      context.api.call(mappings.batchDeleteExternalGroupRoleMappings, { parent, names: [uid] }),
      parent,
    );
  },
  CreateAccountAssociation: associate,
  UpdateAccountAssociation: async (context) => {
    const uid = await associate(context);
    const accountAssociation = { uid, description: 'new' };
    return subjectAfter(context.api.call(associations.updateAccountAssociation, { accountAssociation }), uid);
  },
  DeleteAccountAssociation: async (context) => {
    const uid = await associate(context);
    return subjectAfter(context.api.call(associations.deleteAccountAssociation, { uid }), uid);
  },
  CreateGroupInvite: invite,
  DeleteGroupInvite: async (context) => {
    const uid = await invite(context);
    return subjectAfter(context.api.call(deleteGroupInvite, { uid }), uid);
  },
  AcceptTerms: ({ api, group }) =>
    subjectAfter(api.call(TermsService.method.acceptTerms, { group, documentIds: ['sfdpa.v1'] }), group),
  CreateRepo: newRepo,
  UpdateRepo: async (context) => {
    const uid = await newRepo(context);
    return subjectAfter(context.api.call(updateRepo, { repo: { uid, description: 'new' } }), uid);
  },
  UpdateRepoReadme: async (context) => {
    const uid = await newRepo(context);
    return subjectAfter(context.api.call(updateRepoReadme, { repoReadme: { uid, content: '# app' } }), uid);
  },
  DeleteRepo: async (context) => {
    const uid = await newRepo(context);
    return subjectAfter(context.api.call(deleteRepo, { uid }), uid);
  },
  CreateTag: newTag,
  DeleteTag: async (context) => {
    const uid = await newTag(context);
    return subjectAfter(context.api.call(deleteTag, { uid }), uid);
  },
  CreateSubscription: async ({ api, group }) =>
    (await api.call(createSubscription, { parent: group, subscription: { sink: 'https://sink.invalid/' } })).uid,
  DeleteSubscription: async ({ api, group }) => {
    const subscription = { sink: 'https://sink.invalid/' };
    const { uid } = await api.call(createSubscription, { parent: group, subscription });
    return subjectAfter(api.call(deleteSubscription, { uid }), uid);
  },
};

const emitting = methodTable(v2Files).filter(({ event }) => event !== undefined);

test('there is a test for every event of the contract', () => {
  assert.equal(new Set(emitting.map(({ event }) => event?.type)).size, 37);
  assert.deepEqual(Object.keys(emitters).sort(), emitting.map(({ desc }) => desc.name).sort());
});

describe('delivered events', () => {
  let server: TestServer;
  let api: Client;
  let sink: TestSink;
  let verify: ReturnType<typeof createDeliveryVerifier>;
  let groups = 0;
  before(async () => {
    const [database = assert.fail()] = databases;
    server = await startTestServer(database, { env: { WHARF_ALLOW_INSECURE_SINKS: 'true' } });
    api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    sink = await startSink();
    const { uid, secret } = await subscribe('REST', server, server.organization, sink.url);
    verify = createDeliveryVerifier({ issuer: server.url, subscription: uid, secret });
  });
  after(async () => {
    api.close();
    await server.remove();
    await sink.close();
  });

  const newContext = async (): Promise<EmitContext> => {
    const group = { name: `world-${++groups}` };
    const { uid } = await api.call(createGroup, { parent: server.organization, group });
    return { server, api, group: uid, path: `my-org/${group.name}` };
  };
  const arrived = async (type: string, subject: string) => {
    const find = () =>
      sink.received.find(({ attributes }) => attributes.type === type && attributes.subject === subject);
    const found = await pollUntil(
      async () => ({ type, subject, request: find() }),
      ({ request }) => request !== undefined,
    );
    return verify(found.request ?? assert.fail());
  };

  for (const { event: spec, desc } of emitting) {
    if (!spec) continue;
    test(`${desc.name}: ${spec.type}`, async () => {
      const subject = await (emitters[desc.name] ?? assert.fail('no test emits it'))(await newContext());
      if (spec.audience === 'internal') {
        const [recorded] = (await withStore(server, (store) => eventsAbout(store.reader, subject))).slice(-1);
        assert.equal(recorded?.type, spec.type);
        // When this event arrives, all earlier ones have been delivered.
        const { group } = await newContext();
        await arrived('dev.chainguard.api.iam.group.created.v1', group);
        assert.ok(
          !sink.received.some(({ attributes }) => attributes.type === spec.type),
          'internal events are not delivered',
        );
        return;
      }
      const event = await arrived(spec.type, subject);
      for (const extension of spec.extensions) assert.equal(typeof event[extension], 'string', extension);
      assert.equal(event.audience, 'customer');
      assert.ok(event.data?.actor?.subject);
      const { data } = event;
      // Which body it is, is the subject of published-events.test.ts.
      assert.ok(data?.body);
      assert.match(String(event.bodytype), /^chainguard\.platform\./);
      assert.doesNotMatch(JSON.stringify(data), /hush|cgscim_/, 'bodies contain no secrets');
    });
  }

  // The events of the registry protocol are not in the contract.
  test('pushes and pulls emit events', async () => {
    const context = await newContext();
    const { repo } = await pushed(context);
    for (const type of ['dev.chainguard.registry.push.v1', 'dev.chainguard.registry.pull.v1']) {
      const { data, group } = await arrived(type, repo);
      assert.equal(group, context.group);
      assert.equal(data?.body?.repo_id, repo);
      assert.match(String(data?.body?.digest), /^sha256:[0-9a-f]{64}$/);
    }
  });
});
