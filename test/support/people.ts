import type { TestContext } from 'node:test';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import type { ApiFixture } from './api-fixture.ts';
import { builtinRoleUid } from './callers.ts';
import { newKey, type SigningKey, sign, startIssuer } from './issuer.ts';

/** Servers must accept the issuers of tests, which are on this machine. */
export const ALLOW_TEST_ISSUERS = { WHARF_ALLOW_PRIVATE_ISSUERS: 'true' };

/** An issuer and an identity provider with it in a new organization. */
export interface TestProvider {
  readonly group: string;
  readonly uid: string;
  readonly issuer: string;
  readonly clientId: string;
  /** A token of the issuer, valid for this server and for the identity provider. */
  token(subject: string): Promise<string>;
}

/** A person who has registered through an identity provider and has its default role. */
export interface Person {
  readonly uid: string;
  readonly subject: string;
  /** A token of the issuer. */
  readonly upstream: string;
}

let count = 0;

/** Creates an identity provider in a new organization. With `of`, it has the same issuer as another one. */
export async function newTestProvider(
  fixture: ApiFixture,
  t: TestContext,
  of?: TestIssuer,
): Promise<TestProvider & TestIssuer> {
  const { issuer, key } = of ?? (await newTestIssuer(t));
  const clientId = `client-${++count}`;
  const group = await fixture.newOrganization();
  const { uid } = await fixture.api.call(IdentityProvidersService.method.createIdentityProvider, {
    parent: group,
    identityProvider: {
      name: `provider ${count}`,
      defaultRole: builtinRoleUid('viewer'),
      configuration: { case: 'oidc', value: { issuer, clientId } },
    },
  });
  const token = (subject: string) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, sub: subject, aud: [fixture.server.url, clientId], iat: now, exp: now + 600 };
    return sign(claims, key);
  };
  return { group, uid, issuer, clientId, key, token };
}

export interface TestIssuer {
  readonly issuer: string;
  readonly key: SigningKey;
}

async function newTestIssuer(t: TestContext): Promise<TestIssuer> {
  const key = newKey(`key-${++count}`);
  return { issuer: (await startIssuer(t, key)).url, key };
}

/** Registers a person through an identity provider. */
export async function newPerson(fixture: ApiFixture, provider: TestProvider): Promise<Person> {
  const subject = `person-${++count}`;
  const upstream = await provider.token(subject);
  const { identity: uid } = await fixture.as(upstream).call(Auth.method.register, {});
  return { uid, subject, upstream };
}

/** All credentials by which a person can call the server. */
export async function credentialsOf(fixture: ApiFixture, { upstream }: Person, provider: TestProvider) {
  const { exchange } = SecurityTokenService.method;
  const aud = [fixture.server.url];
  const direct = await fixture.as(upstream).call(exchange, { aud });
  const throughProvider = await fixture.as(upstream).call(exchange, { aud, identityProvider: provider.uid });
  const registryToken = await newRegistryToken(fixture.server.url, direct.token);
  return {
    refreshTokens: [direct.refreshToken, throughProvider.refreshToken],
    bearerTokens: [upstream, direct.token, throughProvider.token],
    registryToken,
  };
}

/** Gets a registry token as Docker does after `docker login` with this token. */
export async function newRegistryToken(url: string, token: string): Promise<string> {
  const headers = { authorization: `Basic ${btoa(`user:${token}`)}` };
  const response = await fetch(`${url}/v2/token?service=${new URL(url).host}`, { headers });
  return ((await response.json()) as { token: string }).token;
}

/** The status of a request to the registry that needs a valid token and no capability. */
export const registryStatus = async (url: string, token: string): Promise<number> =>
  (await fetch(`${url}/v2/`, { headers: { authorization: `Bearer ${token}` } })).status;
