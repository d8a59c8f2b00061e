import type { TestContext } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { JWTPayload } from 'jose';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentitiesService,
  type Identity_ClaimMatchSchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { builtinRoleUid } from './callers.ts';
import { newKey, type SigningKey, sign, startIssuer, type TestIssuer } from './issuer.ts';
import type { TestServer } from './server.ts';
import type { Client } from './wires.ts';

export type ClaimMatch = MessageInitShape<typeof Identity_ClaimMatchSchema>;

/** An organization with an owner of its own, as a tenant of the server has it. */
export interface Tenant {
  readonly uid: string;
  readonly name: string;
}

/** An issuer that several tenants trust, as they trust the issuer of a public build system. */
export interface SharedIssuer extends TestIssuer {
  readonly key: SigningKey;
  /** Signs a token for the server. */
  token(server: TestServer, sub: string, more?: JWTPayload): Promise<string>;
}

let count = 0;

export async function startSharedIssuer(t: TestContext): Promise<SharedIssuer> {
  const key = newKey('shared');
  const issuer = await startIssuer(t, key);
  return Object.assign(issuer, {
    key,
    token(server: TestServer, sub: string, more: JWTPayload = {}) {
      const now = Math.floor(Date.now() / 1000);
      return sign({ iss: issuer.url, sub, aud: server.url, iat: now, exp: now + 600, ...more }, key);
    },
  });
}

/** Creates an organization. `api` must be a client of the operator. */
export async function newTenant(api: Client): Promise<Tenant> {
  const name = `tenant-${++count}`;
  const { uid } = await api.call(GroupsService.method.createGroup, { group: { name } });
  return { uid, name };
}

/** Creates an identity with a role at the same group, and returns its uid. */
export async function newFederatedIdentity(
  api: Client,
  group: string,
  match: ClaimMatch,
  role = 'owner',
): Promise<string> {
  const { uid } = await api.call(IdentitiesService.method.createIdentity, {
    parent: group,
    identity: { name: `federated ${++count}`, relationship: { case: 'claimMatch', value: match } },
  });
  const roleBinding = { identityUid: uid, roleUid: builtinRoleUid(role) };
  await api.call(RoleBindingsService.method.createRoleBinding, { parent: group, roleBinding });
  return uid;
}

/** Creates an identity provider whose default role is viewer, and returns its uid. */
export async function newIdentityProvider(
  api: Client,
  group: string,
  issuer: string,
  clientId: string,
): Promise<string> {
  const configuration = { case: 'oidc', value: { issuer, clientId, clientSecret: 'secret' } } as const;
  const identityProvider = { name: `provider ${++count}`, defaultRole: builtinRoleUid('viewer'), configuration };
  const { uid } = await api.call(IdentityProvidersService.method.createIdentityProvider, {
    parent: group,
    identityProvider,
  });
  return uid;
}

/** What an identity requires of the issuer and subject of its tokens, both exact. */
export const exactMatch = (issuer: string, subject: string): ClaimMatch => ({
  iss: { case: 'issuer', value: issuer },
  sub: { case: 'subject', value: subject },
});

export const subjectPattern = (issuer: string, pattern: string): ClaimMatch => ({
  iss: { case: 'issuer', value: issuer },
  sub: { case: 'subjectPattern', value: pattern },
});
