import assert from 'node:assert/strict';
import { create } from '@bufbuild/protobuf';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { systemClock } from '../../src/base/clock.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { IdentitiesService, IdentitySchema } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { builtinRoles } from '../../src/domains/iam/roles/builtin-roles.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import type { TestServer } from './server.ts';
import { type Client, wires } from './wires.ts';

/** Somebody who can log in. */
export interface TestCaller {
  /** The uid of the identity. */
  readonly uid: string;
  /** A bearer token, good for an hour. */
  token(): Promise<string>;
}

/** The uid of a built-in role. */
export function builtinUid(name: string): string {
  return builtinRoles.find((role) => role.name === name)?.uid ?? assert.fail(`there is no role ${name}`);
}

let callers = 0;

/** An identity in a group without any role. */
export async function stranger(server: TestServer, group: string): Promise<TestCaller> {
  const { name, relationship, token } = await newLogin('https://issuer.test');
  const { uid } = await asOwner(server, (api) =>
    api.call(IdentitiesService.method.createIdentity, { parent: group, identity: { name, relationship } }),
  );
  return { uid, token };
}

/** A person whom `issuer` vouches for, without any role: put past the server to where registering would put them. */
export async function person(server: TestServer, issuer: string, subject?: string): Promise<TestCaller> {
  const { name, relationship, token } = await newLogin(issuer, subject);
  const uid = newUid(ROOT);
  const store = await openStore(server.home);
  try {
    const message = create(IdentitySchema, { name, relationship });
    await store.write((tx) => insert(tx, identities, { message, uid, parent: ROOT }, systemClock()));
  } finally {
    await store.close();
  }
  return { uid, token };
}

/** What an identity needs for logging in, and how it does. */
async function newLogin(issuer: string, subject = `caller ${++callers}`) {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const value = {
    issuer,
    subject,
    audiences: ['wharfinger-test'],
    issuerKeys: JSON.stringify({ keys: [await exportJWK(publicKey)] }),
  };
  const token = () => {
    const now = Math.floor(systemClock() / 1000);
    return new SignJWT()
      .setProtectedHeader({ alg: 'EdDSA' })
      .setIssuer(issuer)
      .setSubject(subject)
      .setAudience('wharfinger-test')
      .setIssuedAt(now)
      .setExpirationTime(now + 3600)
      .sign(privateKey);
  };
  return { name: subject, relationship: { case: 'staticKeys' as const, value }, token };
}

/** An identity in a group with a role on that group, by the role's uid or built-in name. */
export async function callerWith(server: TestServer, role: string, group: string): Promise<TestCaller> {
  const caller = await stranger(server, group);
  const roleUid = role.length >= 40 ? role : builtinUid(role);
  await asOwner(server, (api) =>
    api.call(RoleBindingsService.method.createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: caller.uid, roleUid },
    }),
  );
  return caller;
}

async function asOwner<T>(server: TestServer, work: (api: Client) => Promise<T>): Promise<T> {
  const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
  try {
    return await work(api);
  } finally {
    api.close();
  }
}
