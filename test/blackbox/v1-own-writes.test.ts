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
import { builtinUid, callerWith, person, stranger } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';

const { createWithGroup } = GroupInvites.method;
const { create: createIdentity } = Identities.method;
const ttl = { seconds: 3600n };

let names = 0;
const newName = (): string => `own write ${++names}`;

/** Keys that somebody made elsewhere, and a token that they prove. */
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

everywhere('writes that only v1 has', (bench) => {
  // CreateWithGroup never had a route.
  if (bench.wire === 'gRPC') {
    test('an organization and an invite to it are created together', async () => {
      const name = newName();
      const role = builtinUid('owner');
      const invite = await bench.api.call(createWithGroup, { group: name, role, ttl, singleUse: true });
      assert.match(invite.code, /^\w+\.\S{43}$/);
      const uid = parentOf(invite.id);
      assert.equal(uid, rootOf(uid));
      assert.equal((await bench.api.call(GroupsService.method.getGroup, { uid })).name, name);
      const stored = await bench.api.call(GroupInvitesService.method.getGroupInvite, { uid: invite.id });
      assert.deepEqual([stored.role?.uid, stored.singleUse, stored.code], [role, true, '']);
    });

    test('what is wrong with the invite leaves no organization behind', async () => {
      const name = newName();
      const asked = { group: name, role: `${bench.org}/${'0'.repeat(16)}`, ttl };
      const refused = await rejects(bench.api.call(createWithGroup, asked), Code.INVALID_ARGUMENT);
      assert.deepEqual(refused.fields, ['role']);
      assert.deepEqual((await bench.api.call(GroupsService.method.listGroups, { name })).groups, []);
    });

    test('it takes a name, and not a group that is there', async () => {
      for (const group of [bench.org, await bench.newGroup(), '']) {
        const asked = bench.api.call(createWithGroup, { group, role: builtinUid('viewer'), ttl });
        assert.deepEqual((await rejects(asked, Code.INVALID_ARGUMENT)).fields, ['group']);
      }
    });

    test('whoever cannot found an organization cannot do it this way either, nor hand out more than a founder', async () => {
      const group = await bench.newGroup();
      const local = bench.as(await (await callerWith(bench.server, 'owner', group)).token());
      const asked = { role: builtinUid('viewer'), ttl };
      await rejects(local.call(createWithGroup, { ...asked, group: newName() }), Code.PERMISSION_DENIED);

      const { uid: identityUid, token } = await person(bench.server, 'https://people.example.com', newName());
      const roleBinding = { identityUid, roleUid: builtinUid('owner') };
      await bench.api.call(RoleBindingsService.method.createRoleBinding, { parent: group, roleBinding });
      const founder = bench.as(await token());
      const greedy = { group: newName(), role: builtinUid('operator'), ttl };
      await rejects(founder.call(createWithGroup, greedy), Code.PERMISSION_DENIED);
      const { id } = await founder.call(createWithGroup, { ...greedy, role: builtinUid('owner') });
      assert.equal((await founder.call(GroupsService.method.getGroup, { uid: parentOf(id) })).name, greedy.group);
    });

    test('a token that was narrowed founds no more than it is good for', async () => {
      const founding = ['groups.create', 'group_invites.create', 'role_bindings.create'];
      for (const cap of [founding.slice(0, 1), founding]) {
        const { token } = await bench.api.call(SecurityTokenService.method.exchange, { aud: [bench.server.url], cap });
        const asked = { group: newName(), role: builtinUid('owner'), ttl };
        await rejects(bench.as(token).call(createWithGroup, asked), Code.PERMISSION_DENIED);
      }
    });
  }

  test('an identity of nothing but keys is created in the group asked for, and its tokens are good', async () => {
    const group = await bench.newGroup();
    const { keys, token } = await newKeys(bench.server.url);
    const made = await bench.api.call(createIdentity, { id: group, ...keys });
    assert.equal(parentOf(made.id), group);
    assert.deepEqual([made.issuer, made.subject, made.issuerKeys], [keys.issuer, keys.subject, keys.issuerKeys]);
    assert.ok(made.expiration, 'keys are not trusted for ever');
    const { name, relationship } = await bench.api.call(IdentitiesService.method.getIdentity, { uid: made.id });
    assert.equal(name, keys.subject.replaceAll(':', '-'));
    assert.equal(relationship.case, 'staticKeys');
    assert.equal((await bench.as(token).call(Auth.method.validate)).subject, made.id);
  });

  test('who creates identities in one group only need not name it', async () => {
    const group = await bench.newGroup();
    const { keys } = await newKeys(bench.server.url);
    const local = bench.as(await (await callerWith(bench.server, 'owner', group)).token());
    assert.equal(parentOf((await local.call(createIdentity, keys)).id), group);

    const elsewhere = { id: await bench.newGroup(), ...keys };
    await rejects(local.call(createIdentity, elsewhere), Code.PERMISSION_DENIED);
    const nobody = bench.as(await (await stranger(bench.server, group)).token());
    await rejects(nobody.call(createIdentity, keys), Code.PERMISSION_DENIED);

    const { uid: identityUid, token } = await person(bench.server, 'https://people.example.com', newName());
    for (const parent of [group, elsewhere.id]) {
      const roleBinding = { identityUid, roleUid: builtinUid('owner') };
      await bench.api.call(RoleBindingsService.method.createRoleBinding, { parent, roleBinding });
    }
    const undecided = bench.as(await token()).call(createIdentity, keys);
    assert.deepEqual((await rejects(undecided, Code.INVALID_ARGUMENT)).fields, ['id']);
  });

  test('what is wrong with keys is named as v1 knows it', async () => {
    const id = await bench.newGroup();
    const { keys } = await newKeys(bench.server.url);
    for (const [given, field] of [
      [{ ...keys, id: 'my group' }, 'id'],
      [{ ...keys, id, subject: '' }, 'subject'],
      [{ ...keys, id, issuerKeys: '{}' }, 'issuer_keys'],
      [{ ...keys, id, expiration: { seconds: 1n } }, 'expiration'],
    ] as const) {
      assert.deepEqual((await rejects(bench.api.call(createIdentity, given), Code.INVALID_ARGUMENT)).fields, [field]);
    }
  });
});
