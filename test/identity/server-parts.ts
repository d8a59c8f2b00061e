import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { create, type DescMethodUnary, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { createAccess } from '../../src/access/access.ts';
import { anonymousCaller } from '../../src/access/caller.ts';
import { type Code, unauthenticated } from '../../src/base/errors.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
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
import { createAuthenticator } from '../../src/identity/login/authenticate.ts';
import type { AuthenticateUpstream, UpstreamClaims } from '../../src/identity/sts/exchange.ts';
import { createIssuer } from '../../src/identity/sts/issuer.ts';
import { createPipeline } from '../../src/pipeline/pipeline.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import type { Database } from '../support/databases.ts';
import { silent } from '../support/server.ts';

export const OURS = 'https://wharf.example.com';
export const ISSUER = 'https://issuer.example.com';
export const viewer = builtinRoles.find(({ name }) => name === 'viewer') ?? assert.fail();
export { OWNER };

export const refused = (code: Code, message: RegExp) => ({ name: 'ApiError', code, message });

const methods = new Map(methodTable(files).map((method) => [method.id, method]));

interface Narrowing {
  readonly scopes?: string[];
  readonly cap?: string[];
  readonly identity?: string;
}

export type House = Awaited<ReturnType<typeof openHouse>>;

/**
 * A server without its wires: everything from the pipeline down is real but other issuers, whose tokens are names in a
 * table. It has an organization with one team.
 */
export async function openHouse(database: Database) {
  const home = await database.home();
  const store = await openStore(home);
  const time = { now: Date.UTC(2026, 0, 1) };
  const clock = () => time.now;
  const org = newUid(ROOT);
  const team = newUid(org);
  const people = new Map<string, UpstreamClaims>();

  const verifyStranger = async (token: string): Promise<UpstreamClaims> => {
    const claims = people.get(token);
    if (!claims) throw unauthenticated('the signature of the token is not valid');
    return claims;
  };
  const authenticateUpstream: AuthenticateUpstream = async (token, { identity }) => {
    const claims = await verifyStranger(token);
    return { ...claims, identity: identity ?? stableUid(claims.issuer, claims.subject) };
  };
  const publicUrl = () => OURS;
  const masterKey = randomBytes(32);
  const issuer = await createIssuer({ store, masterKey, clock, publicUrl, verifyStranger, authenticateUpstream });
  const call = createPipeline({
    operations: {
      ...createOperations(createPageTokens(randomBytes(32)), {
        seal: () => assert.fail(),
        publicUrl,
        sinkProblem: () => undefined,
        publicAdvisoryGroups: [],
      }),
      ...issuer.operations,
    },
    store,
    authenticate: createAuthenticator({
      db: store.reader,
      clock,
      tokens: issuer.tokens,
      upstream: authenticateUpstream,
      access: createAccess(store.reader),
      publicUrl,
      seen() {},
    }),
    anonymous: anonymousCaller,
    clock,
    timeoutMs: 10_000,
    log: silent,
    metrics: createMetrics(),
  });

  async function ask<M extends DescMethodUnary>(
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

  /** A token of ours for one of somebody else, or for another of ours. */
  async function exchange(token: string, narrowing: Narrowing = {}): Promise<string> {
    const request = { aud: [OURS], ...narrowing };
    return (await ask(SecurityTokenService.method.exchange, token, request)).token;
  }

  async function newGroup(name: string, uid: string, parent: string): Promise<void> {
    const message = create(GroupSchema, { name, description: `the ${name}` });
    await store.write((tx) => insert(tx, groups, { message, uid, parent }, time.now));
  }

  async function bind(identity: string, group: string, roleUid: string): Promise<void> {
    const draft = { message: newBinding(identity, roleUid), uid: newUid(group), parent: group };
    await store.write((tx) => insert(tx, roleBindings, draft, time.now));
  }

  /** Somebody with a token of another issuer, and the uid that they will have. */
  function newcomer(claims: Partial<UpstreamClaims> = {}): { token: string; uid: string; subject: string } {
    const token = `newcomer-${people.size}`;
    const full = { issuer: ISSUER, subject: token, audiences: [OURS], ...claims };
    people.set(token, full);
    return { token, uid: stableUid(full.issuer, full.subject), subject: full.subject };
  }

  /** Somebody who is in already: a person, or an identity of a group, with a token of another issuer and one of ours. */
  async function member(parent: string = ROOT) {
    const { token: upstream, uid: stable, subject } = newcomer();
    const uid = parent === ROOT ? stable : newUid(parent);
    const value = { iss: { case: 'issuer', value: ISSUER }, sub: { case: 'subject', value: subject } } as const;
    const message = create(IdentitySchema, { name: 'member', relationship: { case: 'claimMatch', value } });
    await store.write((tx) => insert(tx, identities, { message, uid, parent }, time.now));
    return { uid, upstream, token: await exchange(upstream, { identity: uid }) };
  }

  /** An identity provider that lets people into `parent` as viewers. */
  async function newProvider(issuer: string, clientId: string, parent: string): Promise<string> {
    const uid = newUid(parent);
    const configuration = { case: 'oidc', value: { issuer, clientId } } as const;
    const message = create(IdentityProviderSchema, { name: 'provider', defaultRole: viewer.uid, configuration });
    await store.write((tx) => insert(tx, identityProviders, { message, uid, parent }, time.now));
    return uid;
  }

  /** The code of an invite into the team, as a viewer, for one use. */
  async function newInvite(email = ''): Promise<string> {
    const { uid, token } = await member();
    await bind(uid, org, OWNER.uid);
    const groupInvite = { roleUid: viewer.uid, ttl: { seconds: 3600n }, singleUse: true, email };
    return (await ask(GroupInvitesService.method.createGroupInvite, token, { parent: team, groupInvite })).code;
  }

  async function close(): Promise<void> {
    await store.close();
    await home.remove();
  }

  await syncBuiltinRoles(store, clock);
  await newGroup('organization', org, ROOT);
  await newGroup('team', team, org);
  return { store, time, org, team, ask, exchange, newGroup, bind, newcomer, member, newProvider, newInvite, close };
}
