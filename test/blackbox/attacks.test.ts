import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { readOwner } from '../../src/identity/owner/owner-key.ts';
import { callerWith } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';

const { getGroup, listGroups } = GroupsService.method;
const { createIdentity } = IdentitiesService.method;

everywhere('attacks', (bench) => {
  test('a page token serves the caller it was given to', async () => {
    for (let i = 0; i < 3; i++) await bench.newGroup();
    const { nextPageToken } = await bench.api.call(listGroups, { pageSize: 1 });
    assert.notEqual(nextPageToken, '');
    const { token } = await callerWith(bench.server, 'viewer', bench.org);
    const thief = bench.as(await token());
    const error = await rejects(
      thief.call(listGroups, { pageSize: 1, pageToken: nextPageToken }),
      Code.INVALID_ARGUMENT,
    );
    assert.deepEqual(error.fields, ['page_token']);
  });

  test('an identity that claims to be the owner changes nothing for the owner and gains nothing', async () => {
    const owner = await readOwner(bench.server.home.dataDir);
    assert.ok(owner);
    const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
    const { issuer, subject, audience } = owner;
    const issuerKeys = JSON.stringify({ keys: [await exportJWK(publicKey)] });
    const value = { issuer, subject, issuerKeys, audiences: [audience] };
    const parent = await bench.newGroup();
    await bench.api.call(createIdentity, {
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
    await rejects(bench.as(forged).call(getGroup, { uid: bench.org }), Code.PERMISSION_DENIED);
    await bench.api.call(getGroup, { uid: bench.org });
  });
});
