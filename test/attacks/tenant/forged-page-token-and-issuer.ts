import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { readOwner } from '../../../src/identity/owner/owner-key.ts';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';

const { getGroup, listGroups } = GroupsService.method;
const { createIdentity } = IdentitiesService.method;

onEveryDatabaseAndWire('page tokens and issuers of others', (fixture) => {
  test('a page token is rejected for another caller', async () => {
    for (let i = 0; i < 3; i++) await fixture.newGroup();
    const { nextPageToken } = await fixture.api.call(listGroups, { pageSize: 1 });
    assert.notEqual(nextPageToken, '');
    const { token } = await callerWithRole(fixture.server, 'viewer', fixture.org);
    const thief = fixture.as(await token());
    const error = await rejects(
      thief.call(listGroups, { pageSize: 1, pageToken: nextPageToken }),
      Code.INVALID_ARGUMENT,
    );
    assert.deepEqual(error.fields, ['page_token']);
  });

  test('an identity with the issuer and subject of the owner gains no access, and the owner keeps it', async () => {
    const owner = await readOwner(fixture.server.dataLocation.dataDir);
    assert.ok(owner);
    const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
    const { issuer, subject, audience } = owner;
    const issuerKeys = JSON.stringify({ keys: [await exportJWK(publicKey)] });
    const value = { issuer, subject, issuerKeys, audiences: [audience] };
    const parent = await fixture.newGroup();
    await fixture.api.call(createIdentity, {
      parent,
      identity: { name: 'impostor', relationship: { case: 'staticKeys', value } },
    });
    const now = Math.floor(Date.now() / 1000);
    const forged = await new SignJWT()
      .setProtectedHeader({ alg: 'EdDSA' })
      .setIssuer(issuer)
      .setSubject(subject)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + 600)
      .sign(privateKey);
    await rejects(fixture.as(forged).call(getGroup, { uid: fixture.org }), Code.PERMISSION_DENIED);
    await fixture.api.call(getGroup, { uid: fixture.org });
  });
});
