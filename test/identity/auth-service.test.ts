import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { newUid, ROOT, type Uid } from '../../src/base/uid.ts';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { bindingsOf } from '../../src/domains/iam/roles/role-bindings.ts';
import { find } from '../../src/resource/read.ts';
import { databases } from '../support/databases.ts';
import { OWNER, openTestServer, refused, SERVER_URL, type TestServer, viewer } from './server-parts.ts';

for (const database of databases) {
  describe(`Validate on ${database.name}`, () => {
    let server: TestServer;
    let org: Uid;
    let team: Uid;
    const validate = (token: string) => server.callMethod(Auth.method.validate, token, {});

    before(async () => {
      server = await openTestServer(database);
      ({ org, team } = server);
    });
    after(() => server.close());

    it('returns the subject, audience, expiry time and capabilities of a token', async () => {
      const { uid, token } = await server.newIdentity();
      await server.bind(uid, org, viewer.uid);
      await server.bind(uid, team, OWNER.uid);
      const who = await validate(token);
      assert.equal(who.issuer, SERVER_URL);
      assert.equal(who.subject, uid);
      assert.deepEqual(who.audience, [SERVER_URL]);
      assert.equal(timestampMs(who.issuedAt ?? assert.fail()), server.time.now);
      assert.ok(timestampMs(who.expiry ?? assert.fail()) >= server.time.now + 3_600_000);
      assert.deepEqual(
        who.capabilities.map(({ group, role }) => [group?.id, group?.name, group?.description, role?.id, role?.name]),
        [
          [org, 'organization', 'the organization', viewer.uid, 'viewer'],
          [team, 'team', 'the team', OWNER.uid, 'owner'],
        ],
      );
      for (const { role, capabilities } of who.capabilities) {
        assert.ok(capabilities.includes('groups.list'));
        assert.deepEqual(capabilities, role?.capabilities);
      }
    });

    it('returns the capabilities that the token scope leaves', async () => {
      const { uid, token } = await server.newIdentity();
      await server.bind(uid, org, viewer.uid);
      const other = newUid(ROOT);
      const capabilitiesWith = async (restriction: object) =>
        (await validate(await server.exchange(token, restriction))).capabilities.map(({ group, capabilities }) => [
          group?.id,
          group?.name,
          capabilities.length,
        ]);
      const [all] = (await validate(token)).capabilities;
      assert.deepEqual(await capabilitiesWith({ cap: ['groups.list', 'groups.create'] }), [[org, 'organization', 1]]);
      assert.deepEqual(await capabilitiesWith({ scopes: [team] }), [[team, 'team', all?.capabilities.length]]);
      assert.deepEqual(await capabilitiesWith({ scopes: [team, other], cap: ['groups.list'] }), [[team, 'team', 1]]);
      assert.deepEqual(await capabilitiesWith({ scopes: [other] }), []);
    });

    it('omits roles of an identity outside of the group that it belongs to', async () => {
      const { uid, token } = await server.newIdentity(team);
      await server.bind(uid, org, viewer.uid);
      await server.bind(uid, team, viewer.uid);
      assert.deepEqual(
        (await validate(token)).capabilities.map(({ group }) => group?.id),
        [team],
      );
    });

    it('returns the e-mail address', async () => {
      const { token } = server.unregisteredUser({ email: { address: 'alice@example.com', verified: true } });
      await server.callMethod(Auth.method.register, token, { code: await server.newInvite() });
      assert.equal((await validate(await server.exchange(token))).email, 'alice@example.com');
      assert.equal((await validate((await server.newIdentity()).token)).email, '');
    });

    it('requires a valid token', async () => {
      await assert.rejects(validate('nonsense'), refused(Code.UNAUTHENTICATED, /./));
    });
  });

  describe(`Delete on ${database.name}`, () => {
    let server: TestServer;
    let org: Uid;
    let team: Uid;
    const validate = (token: string) => server.callMethod(Auth.method.validate, token, {});

    before(async () => {
      server = await openTestServer(database);
      ({ org, team } = server);
    });
    after(() => server.close());

    const deleteIdentity = (token: string, id: string) => server.callMethod(Auth.method.delete, token, { id });

    it('deletes the identity of the caller and its role bindings, and revokes its tokens', async () => {
      const { uid, federatedToken, token } = await server.newIdentity();
      await server.bind(uid, org, viewer.uid);
      await deleteIdentity(token, uid);
      assert.equal(await find(server.store.reader, identities, uid), undefined);
      assert.deepEqual(await bindingsOf(server.store.reader, uid), []);
      await assert.rejects(validate(token), refused(Code.UNAUTHENTICATED, /was deleted/));
      await assert.rejects(server.exchange(federatedToken), refused(Code.PERMISSION_DENIED, /invalid "iss"/));
    });

    it('refuses other identities, and identities that belong to a group', async () => {
      const { token } = await server.newIdentity();
      const { uid: other } = await server.newIdentity();
      for (const id of [other, newUid(ROOT)]) {
        await assert.rejects(
          deleteIdentity(token, id),
          refused(Code.PERMISSION_DENIED, /users can delete only their own identity/),
        );
      }
      for (const id of ['', 'nonsense']) {
        await assert.rejects(deleteIdentity(token, id), refused(Code.INVALID_ARGUMENT, /id: must be the uid/));
      }
      const machine = await server.newIdentity(team);
      await assert.rejects(
        deleteIdentity(machine.token, machine.uid),
        refused(Code.PERMISSION_DENIED, /users can delete only their own identity/),
      );
      assert.ok(await find(server.store.reader, identities, other));
    });

    it('refuses restricted tokens', async () => {
      const { uid, token } = await server.newIdentity();
      for (const restriction of [{ scopes: [org] }, { cap: ['groups.list'] }]) {
        const restricted = await server.exchange(token, restriction);
        await assert.rejects(
          deleteIdentity(restricted, uid),
          refused(Code.PERMISSION_DENIED, /restricted by scopes or capabilities/),
        );
      }
      assert.ok(await find(server.store.reader, identities, uid));
    });
  });
}
