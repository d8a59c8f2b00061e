import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Code } from '../../src/base/errors.ts';
import { parentOf, rootOf } from '../../src/base/uid.ts';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Identities } from '../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import { GroupInvites } from '../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole, registeredCaller } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { createWithGroup } = GroupInvites.method;
const { create: createIdentity } = Identities.method;
const ttl = { seconds: 3600n };

let names = 0;
const newName = (): string => `own write ${++names}`;

/** Creates a key pair, and a token signed with it. */
async function newKeys(audience: string) {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const issuer = 'https://cluster.example.com';
  const subject = `system:serviceaccount:agents:${newName().replaceAll(' ', '-')}`;
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'EdDSA' })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey);
  return { keys: { issuer, subject, issuerKeys: JSON.stringify({ keys: [await exportJWK(publicKey)] }) }, token };
}

onEveryDatabaseAndWire('writes that only v1 has', (fixture) => {
  // CreateWithGroup has no REST route.
  if (fixture.wire === 'gRPC') {
    test('an organization and an invite to it are created together', async () => {
      const name = newName();
      const role = builtinRoleUid('owner');
      const invite = await fixture.api.call(createWithGroup, { group: name, role, ttl, singleUse: true });
      assert.match(invite.code, /^\w+\.\S{43}$/);
      const uid = parentOf(invite.id);
      assert.equal(uid, rootOf(uid));
      assert.equal((await fixture.api.call(GroupsService.method.getGroup, { uid })).name, name);
      const stored = await fixture.api.call(GroupInvitesService.method.getGroupInvite, { uid: invite.id });
      assert.deepEqual([stored.role?.uid, stored.singleUse, stored.code], [role, true, '']);
    });

    test('an invalid invite creates no organization', async () => {
      const name = newName();
      const request = { group: name, role: `${fixture.org}/${'0'.repeat(16)}`, ttl };
      const refused = await rejects(fixture.api.call(createWithGroup, request), Code.INVALID_ARGUMENT);
      assert.deepEqual(refused.fields, ['role']);
      assert.deepEqual((await fixture.api.call(GroupsService.method.listGroups, { name })).groups, []);
    });

    test('CreateWithGroup takes the name of a new organization, not a uid', async () => {
      for (const group of [fixture.org, await fixture.newGroup(), '']) {
        const request = fixture.api.call(createWithGroup, { group, role: builtinRoleUid('viewer'), ttl });
        assert.deepEqual((await rejects(request, Code.INVALID_ARGUMENT)).fields, ['group']);
      }
    });

    test('the caller must be allowed to create an organization, and cannot grant more than it holds', async () => {
      const group = await fixture.newGroup();
      const local = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
      const request = { role: builtinRoleUid('viewer'), ttl };
      await rejects(local.call(createWithGroup, { ...request, group: newName() }), Code.PERMISSION_DENIED);

      const { uid: identityUid, token } = await registeredCaller(
        fixture.server,
        'https://people.example.com',
        newName(),
      );
      const roleBinding = { identityUid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(RoleBindingsService.method.createRoleBinding, { parent: group, roleBinding });
      const founder = fixture.as(await token());
      const excessive = { group: newName(), role: builtinRoleUid('operator'), ttl };
      await rejects(founder.call(createWithGroup, excessive), Code.PERMISSION_DENIED);
      const { id } = await founder.call(createWithGroup, { ...excessive, role: builtinRoleUid('owner') });
      assert.equal((await founder.call(GroupsService.method.getGroup, { uid: parentOf(id) })).name, excessive.group);
    });

    test('a token scope without the needed capabilities does not allow creating an organization', async () => {
      const capabilities = ['groups.create', 'group_invites.create', 'role_bindings.create'];
      for (const cap of [capabilities.slice(0, 1), capabilities]) {
        const { token } = await fixture.api.call(SecurityTokenService.method.exchange, {
          aud: [fixture.server.url],
          cap,
        });
        const request = { group: newName(), role: builtinRoleUid('owner'), ttl };
        await rejects(fixture.as(token).call(createWithGroup, request), Code.PERMISSION_DENIED);
      }
    });
  }

  test('an identity with only keys is created in the requested group, and its tokens are valid', async () => {
    const group = await fixture.newGroup();
    const { keys, token } = await newKeys(fixture.server.url);
    const made = await fixture.api.call(createIdentity, { id: group, ...keys });
    assert.equal(parentOf(made.id), group);
    assert.deepEqual([made.issuer, made.subject, made.issuerKeys], [keys.issuer, keys.subject, keys.issuerKeys]);
    assert.ok(made.expiration, 'keys expire');
    const { name, relationship } = await fixture.api.call(IdentitiesService.method.getIdentity, { uid: made.id });
    assert.equal(name, keys.subject.replaceAll(':', '-'));
    assert.equal(relationship.case, 'staticKeys');
    assert.equal((await fixture.as(token).call(Auth.method.validate)).subject, made.id);
  });

  test('a caller that can create identities in only one group need not name it', async () => {
    const group = await fixture.newGroup();
    const { keys } = await newKeys(fixture.server.url);
    const local = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    assert.equal(parentOf((await local.call(createIdentity, keys)).id), group);

    const elsewhere = { id: await fixture.newGroup(), ...keys };
    await rejects(local.call(createIdentity, elsewhere), Code.PERMISSION_DENIED);
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, group)).token());
    await rejects(unprivileged.call(createIdentity, keys), Code.PERMISSION_DENIED);

    const { uid: identityUid, token } = await registeredCaller(fixture.server, 'https://people.example.com', newName());
    for (const parent of [group, elsewhere.id]) {
      const roleBinding = { identityUid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(RoleBindingsService.method.createRoleBinding, { parent, roleBinding });
    }
    const ambiguous = fixture.as(await token()).call(createIdentity, keys);
    assert.deepEqual((await rejects(ambiguous, Code.INVALID_ARGUMENT)).fields, ['id']);
  });

  test('validation errors of keys name the fields of v1', async () => {
    const id = await fixture.newGroup();
    const { keys } = await newKeys(fixture.server.url);
    for (const [request, field] of [
      [{ ...keys, id: 'my group' }, 'id'],
      [{ ...keys, id, subject: '' }, 'subject'],
      [{ ...keys, id, issuerKeys: '' }, 'issuer_keys'],
      [{ ...keys, id, issuerKeys: '{"kty":"oct","k":"AAAA"}' }, 'issuer_keys'],
      [{ ...keys, id, expiration: { seconds: 1n } }, 'expiration'],
    ] as const) {
      assert.deepEqual((await rejects(fixture.api.call(createIdentity, request), Code.INVALID_ARGUMENT)).fields, [
        field,
      ]);
    }
  });
});
