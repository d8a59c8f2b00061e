import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { create, type DescMethodUnary, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { anonymousCaller } from '../../src/access/create-caller.ts';
import { createGrantCache } from '../../src/access/grant-cache.ts';
import { type Code, unauthenticated } from '../../src/base/errors.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { newUid, type ParentUid, ROOT, type Uid } from '../../src/base/uid.ts';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { createOperations } from '../../src/domains/domains.ts';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { stableUid } from '../../src/domains/iam/identities/stable-uid.ts';
import { identityProviders } from '../../src/domains/iam/identity-providers/identity-providers.ts';
import { builtinRoles, OWNER } from '../../src/domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../../src/domains/iam/roles/role-bindings.ts';
import { syncBuiltinRoles } from '../../src/domains/iam/roles/sync-builtin-roles.ts';
import type {
  AuthenticateFederated,
  FederatedClaims,
  MatchFederated,
} from '../../src/identity/federation/federated-login.ts';
import { createAuthenticator } from '../../src/identity/login/authenticate.ts';
import { credentialFingerprintOf } from '../../src/identity/login/login-validity.ts';
import { fixedMasterKeys } from '../../src/identity/master-key.testing.ts';
import { createTokenIssuer } from '../../src/identity/sts/token-issuer.ts';
import { createCallObserver } from '../../src/pipeline/observe.ts';
import { createPipeline } from '../../src/pipeline/pipeline.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { find } from '../../src/resource/read.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import type { Database } from '../support/databases.ts';
import { silentLog } from '../support/server.ts';

export const SERVER_URL = 'https://wharf.example.com';
export const ISSUER = 'https://issuer.example.com';
export const viewer = builtinRoles.find(({ name }) => name === 'viewer') ?? assert.fail();
export { OWNER };

export const refused = (code: Code, message: RegExp) => ({ name: 'ApiError', code, message });

const methods = new Map(methodTable(files).map((method) => [method.id, method]));

interface TokenRestriction {
  readonly scopes?: string[];
  readonly cap?: string[];
  readonly identity?: string;
}

export type TestServer = Awaited<ReturnType<typeof openTestServer>>;

/**
 * Creates a server without REST, gRPC and OCI. Only the other issuers are simulated: their tokens are keys of a map.
 * The server has an organization with one team.
 */
export async function openTestServer(database: Database) {
  const home = await database.createDataLocation();
  const store = await openStore(home);
  const time = { now: Date.UTC(2026, 0, 1) };
  const clock = () => time.now;
  const org = newUid(ROOT);
  const team = newUid(org);
  const claimsByToken = new Map<string, FederatedClaims>();

  const verifyUnregistered = async (token: string): Promise<FederatedClaims> => {
    const claims = claimsByToken.get(token);
    if (!claims) throw unauthenticated('the signature of the token is not valid');
    return claims;
  };
  const authenticateFederated: AuthenticateFederated = async (token, { identity }) => {
    const claims = await verifyUnregistered(token);
    return { ...claims, identity: identity ?? stableUid(claims.issuer, claims.subject) };
  };
  const matchFederated: MatchFederated = async (token) => {
    const claims = await verifyUnregistered(token);
    const uid = stableUid(claims.issuer, claims.subject);
    const stored = await find(store.reader, identities, uid);
    if (!stored) throw unauthenticated('no identity matches');
    const credentialFingerprint = credentialFingerprintOf(stored);
    const match = { uid, created: 0, specificity: 'exact', credentialFingerprint } as const;
    return { ...claims, authenticatedAt: time.now, matches: [match] };
  };
  const publicUrl = SERVER_URL;
  const masterKeys = fixedMasterKeys();
  const issuer = await createTokenIssuer({
    store,
    masterKeys,
    clock,
    publicUrl,
    verifyUnregistered,
    authenticateFederated,
  });
  const call = createPipeline({
    operations: {
      ...createOperations(createPageTokens(randomBytes(32)), {
        seal: () => assert.fail(),
        publicUrl,
        sinkProblem: () => undefined,
        makerAccess: async () => undefined,
        publicAdvisoryGroups: [],
        allowPrivateIssuers: false,
      }),
      ...issuer.operations,
    },
    store,
    ...createAuthenticator({
      db: store.reader,
      clock,
      accessTokens: issuer.accessTokens,
      matchFederated,
      grantCache: createGrantCache(store.reader),
      publicUrl,
      recordLastSeen() {},
    }),
    anonymous: anonymousCaller,
    clock,
    timeoutMs: 10_000,
    observer: createCallObserver({ log: silentLog, metrics: createMetrics() }),
  });

  async function callMethod<M extends DescMethodUnary>(
    desc: M,
    token: string | undefined,
    request: MessageInitShape<M['input']>,
  ): Promise<MessageShape<M['output']>> {
    const response = await call({
      method: methods.get(`${desc.parent.typeName}/${desc.name}`) ?? assert.fail(),
      wire: 'rest',
      authorization: token === undefined ? undefined : `Bearer ${token}`,
      requestId: 'test',
      peer: { address: '', userAgent: '' },
      signal: () => new AbortController().signal,
      read: () => create(desc.input, request as never),
    });
    return response as MessageShape<M['output']>;
  }

  /** Exchanges a federated token or an access token for an access token. */
  async function exchange(token: string, restriction: TokenRestriction = {}): Promise<string> {
    const request = { aud: [SERVER_URL], ...restriction };
    return (await callMethod(SecurityTokenService.method.exchange, token, request)).token;
  }

  async function newGroup(name: string, uid: Uid, parent: ParentUid): Promise<void> {
    const message = create(GroupSchema, { name, description: `the ${name}` });
    await store.write((tx) => insert(tx, groups, { message, uid, parent }, time.now));
  }

  async function bind(identity: string, group: Uid, roleUid: string): Promise<void> {
    const draft = { message: newBinding(identity, roleUid), uid: newUid(group), parent: group };
    await store.write((tx) => insert(tx, roleBindings, draft, time.now));
  }

  /** Returns a federated token of a user without identity, and the uid that registration will give. */
  function unregisteredUser(claims: Partial<FederatedClaims> = {}): { token: string; uid: Uid; subject: string } {
    const token = `user-${claimsByToken.size}`;
    const full = { issuer: ISSUER, subject: token, audiences: [SERVER_URL], expires: Infinity, ...claims };
    claimsByToken.set(token, full);
    return { token, uid: stableUid(full.issuer, full.subject), subject: full.subject };
  }

  /** Creates the identity of a user, or one of a group, and returns it with a federated token and an access token. */
  async function newIdentity(parent: ParentUid = ROOT) {
    const { token: federatedToken, uid: stable, subject } = unregisteredUser();
    const uid = parent === ROOT ? stable : newUid(parent);
    const value = { iss: { case: 'issuer', value: ISSUER }, sub: { case: 'subject', value: subject } } as const;
    const message = create(IdentitySchema, { name: 'member', relationship: { case: 'claimMatch', value } });
    await store.write((tx) => insert(tx, identities, { message, uid, parent }, time.now));
    return { uid, federatedToken, token: await exchange(federatedToken, { identity: uid }) };
  }

  /** Creates an identity provider whose default role is viewer. */
  async function newProvider(issuer: string, clientId: string, parent: Uid): Promise<Uid> {
    const uid = newUid(parent);
    const configuration = { case: 'oidc', value: { issuer, clientId } } as const;
    const message = create(IdentityProviderSchema, { name: 'provider', defaultRole: viewer.uid, configuration });
    await store.write((tx) => insert(tx, identityProviders, { message, uid, parent }, time.now));
    return uid;
  }

  /** Creates an invite to the team with the role viewer for one use, and returns its code. */
  async function newInvite(email = ''): Promise<string> {
    const { uid, token } = await newIdentity();
    await bind(uid, org, OWNER.uid);
    const groupInvite = { roleUid: viewer.uid, ttl: { seconds: 3600n }, singleUse: true, email };
    return (await callMethod(GroupInvitesService.method.createGroupInvite, token, { parent: team, groupInvite })).code;
  }

  async function close(): Promise<void> {
    await store.close();
    await home.remove();
  }

  await syncBuiltinRoles(store, clock);
  await newGroup('organization', org, ROOT);
  await newGroup('team', team, org);
  // People can log in for as long as an identity provider has their issuer. No token has this client as its audience.
  await newProvider(ISSUER, 'unused-client', org);
  return {
    store,
    time,
    org,
    team,
    callMethod,
    exchange,
    newGroup,
    bind,
    unregisteredUser,
    newIdentity,
    newProvider,
    newInvite,
    close,
  };
}
