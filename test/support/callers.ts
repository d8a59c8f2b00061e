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

/** An identity that can log in. */
export interface TestCaller {
  readonly uid: string;
  /** Signs a bearer token that is valid for one hour. */
  token(): Promise<string>;
}

/** The uid of a built-in role. */
export function builtinRoleUid(name: string): string {
  return builtinRoles.find((role) => role.name === name)?.uid ?? assert.fail(`there is no built-in role ${name}`);
}

let callerCount = 0;

/** Creates an identity in a group, without any role. */
export async function callerWithoutRole(server: TestServer, group: string): Promise<TestCaller> {
  const { name, relationship, token } = await newStaticKeyLogin('https://issuer.test');
  const { uid } = await asOwner(server, (api) =>
    api.call(IdentitiesService.method.createIdentity, { parent: group, identity: { name, relationship } }),
  );
  return { uid, token };
}

/**
 * Inserts the identity of a person without any role directly into the database, as registration by `issuer` would
 * create it.
 */
export async function registeredCaller(server: TestServer, issuer: string, subject?: string): Promise<TestCaller> {
  const { name, relationship, token } = await newStaticKeyLogin(issuer, subject);
  const uid = newUid(ROOT);
  const store = await openStore(server.dataLocation);
  try {
    const message = create(IdentitySchema, { name, relationship });
    await store.write((tx) => insert(tx, identities, { message, uid, parent: ROOT }, systemClock()));
  } finally {
    await store.close();
  }
  return { uid, token };
}

/** Creates a key pair: the relationship of an identity that trusts it, and a function that signs its tokens. */
async function newStaticKeyLogin(issuer: string, subject = `caller ${++callerCount}`) {
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

/** Creates an identity in a group, with a role at that group. `role` is a uid or the name of a built-in role. */
export async function callerWithRole(server: TestServer, role: string, group: string): Promise<TestCaller> {
  const caller = await callerWithoutRole(server, group);
  const roleUid = role.length >= 40 ? role : builtinRoleUid(role);
  await asOwner(server, (api) =>
    api.call(RoleBindingsService.method.createRoleBinding, {
      parent: group,
      roleBinding: { identityUid: caller.uid, roleUid },
    }),
  );
  return caller;
}

async function asOwner<T>(server: TestServer, run: (api: Client) => Promise<T>): Promise<T> {
  const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
  try {
    return await run(api);
  } finally {
    api.close();
  }
}
