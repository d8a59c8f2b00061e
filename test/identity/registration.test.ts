import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { newUid, ROOT, type Uid } from '../../src/base/uid.ts';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { bindingsOf, roleBindings } from '../../src/domains/iam/roles/role-bindings.ts';
import { find } from '../../src/resource/read.ts';
import { deleteOne } from '../../src/resource/write.ts';
import { databases } from '../support/databases.ts';
import { ISSUER, openTestServer, refused, SERVER_URL, type TestServer } from './server-parts.ts';

const EVENTS = `SELECT subject, scope, body, body_type FROM outbox
  WHERE type = 'dev.chainguard.api.auth.registered.v1' ORDER BY id`;

for (const database of databases) {
  describe(`Register on ${database.name}`, () => {
    let server: TestServer;
    let team: Uid;
    const register = (token: string | undefined, request: { code?: string; identityId?: string } = {}) =>
      server.callMethod(Auth.method.register, token, request);
    const events = async () => {
      const rows = await server.store.reader.all<Record<'subject' | 'scope' | 'body' | 'body_type', string>>(EVENTS);
      return rows.map((row) => ({ ...row, body: JSON.parse(row.body) }));
    };

    before(async () => {
      server = await openTestServer(database);
      ({ team } = server);
    });
    after(() => server.close());

    it('requires an invite or an identity provider', async () => {
      const { token, uid } = server.unregisteredUser();
      await assert.rejects(register(token), refused(Code.PERMISSION_DENIED, /registration requires an invite/));
      await assert.rejects(register(token, { code: 'nonsense' }), refused(Code.PERMISSION_DENIED, /no such invite/));
      assert.equal(await find(server.store.reader, identities, uid), undefined);
      await assert.rejects(register(undefined), refused(Code.UNAUTHENTICATED, /send a token/));
      await assert.rejects(register('nonsense'), refused(Code.UNAUTHENTICATED, /signature/));
    });

    it('creates the identity of a user with an invite, with the uid that LookupIdentity returns', async () => {
      const before = (await events()).length;
      const { token, uid, subject } = server.unregisteredUser({
        email: { address: 'Bob.Ö@Example.com', verified: true },
      });
      const session = await register(token, { code: await server.newInvite(), identityId: uid });
      assert.deepEqual([session.identity, session.group], [uid, team]);
      const stored = (await find(server.store.reader, identities, uid)) ?? assert.fail();
      const identity = stored.message;
      assert.equal(stored.parent, ROOT);
      assert.equal(identity.name, 'bob.-example.com');
      assert.deepEqual([identity.email, identity.emailUnverified], ['Bob.Ö@Example.com', '']);
      assert.deepEqual(identity.lastSeenTime, timestampFromMs(server.time.now));
      assert.ok(identity.relationship.case === 'claimMatch');
      const { iss, sub, aud } = identity.relationship.value;
      assert.deepEqual([iss.value, sub.value, aud.value], [ISSUER, subject, undefined]);
      const [binding, ...more] = await bindingsOf(server.store.reader, uid);
      assert.deepEqual([binding?.parent, more], [team, []]);
      assert.deepEqual((await events()).slice(before), [
        {
          subject: '',
          scope: team,
          body_type: 'chainguard.platform.auth.Session',
          body: { identity: uid, group: team },
        },
      ]);
    });

    it('stores an unverified e-mail address in its own field', async () => {
      const { token, uid } = server.unregisteredUser({ email: { address: 'eve@example.com', verified: false } });
      await assert.rejects(
        register(token, { code: await server.newInvite('eve@example.com') }),
        refused(Code.PERMISSION_DENIED, /none that is verified/),
      );
      await register(token, { code: await server.newInvite() });
      const identity = (await find(server.store.reader, identities, uid))?.message ?? assert.fail();
      assert.deepEqual([identity.email, identity.emailUnverified], ['', 'eve@example.com']);
    });

    it('accepts an invite once, and refuses another uid and access tokens', async () => {
      const code = await server.newInvite();
      const { token } = server.unregisteredUser();
      await assert.rejects(
        register(token, { code, identityId: newUid(ROOT) }),
        refused(Code.INVALID_ARGUMENT, /identity_id: must be [0-9a-f]{40}/),
      );
      await assert.rejects(
        register((await server.newIdentity()).token, { code }),
        refused(Code.PERMISSION_DENIED, /access token of this server/),
      );
      assert.equal((await register(token, { code })).group, team, 'the refused requests did not use up the invite');
      await assert.rejects(
        register(server.unregisteredUser().token, { code }),
        refused(Code.PERMISSION_DENIED, /no such invite/),
      );
    });

    it('creates no identity when the invite is refused', async () => {
      const { token, uid } = server.unregisteredUser({ email: { address: 'a@example.com', verified: true } });
      await server.newProvider(ISSUER, 'client for invites', server.org);
      const code = await server.newInvite('b@example.com');
      await assert.rejects(register(token, { code }), refused(Code.PERMISSION_DENIED, /another e-mail address/));
      assert.equal(await find(server.store.reader, identities, uid), undefined);
    });

    it('gives users of an identity provider its default role', async () => {
      const issuer = 'https://idp.example.com';
      await server.newProvider(issuer, 'our client', team);
      const { token, uid } = server.unregisteredUser({ issuer, audiences: ['our client'] });
      const before = (await events()).length;
      const first = await register(token);
      assert.deepEqual([first.identity, first.group], [uid, team]);
      assert.equal((await bindingsOf(server.store.reader, uid)).length, 1);
      assert.deepEqual(await register(token), first, 'the second registration changes nothing');
      assert.equal((await events()).length, before + 1);

      const [binding = assert.fail()] = await bindingsOf(server.store.reader, uid);
      await server.store.write((tx) => deleteOne(tx, roleBindings, binding));
      assert.deepEqual(await register(token), first);
      assert.deepEqual(await bindingsOf(server.store.reader, uid), [], 'a deleted role binding is not created again');

      const otherClient = server.unregisteredUser({ issuer, audiences: [SERVER_URL, 'another client'] });
      await assert.rejects(
        register(otherClient.token),
        refused(Code.PERMISSION_DENIED, /registration requires an invite/),
      );
    });

    it('joins every organization with a provider for the client, so that a copy does not divert users', async () => {
      const issuer = 'https://popular.example.com';
      const elsewhere = newUid(ROOT);
      await server.newGroup('elsewhere', elsewhere, ROOT);
      await server.newProvider(issuer, 'client', team);
      server.time.now += 1;
      await server.newProvider(issuer, 'client', elsewhere);
      const { token, uid } = server.unregisteredUser({ issuer, audiences: ['client'] });
      assert.equal((await register(token)).group, team);
      assert.equal((await register(token)).group, team);
      const joined = (await bindingsOf(server.store.reader, uid)).map(({ parent }) => parent);
      assert.deepEqual(joined.sort(), [team, elsewhere].sort());
    });

    it('adds a registered user to another group', async () => {
      const issuer = 'https://second.example.com';
      await server.newProvider(issuer, 'client', team);
      const { token, uid } = server.unregisteredUser({ issuer, audiences: ['client'] });
      await register(token, { code: await server.newInvite() });
      assert.equal((await register(token)).group, team);
      assert.equal(
        (await bindingsOf(server.store.reader, uid)).length,
        1,
        'the same role at the same group is one role binding',
      );
      const user = server.unregisteredUser();
      await register(user.token, { code: await server.newInvite() });
      const again = await register(user.token);
      assert.deepEqual(
        [again.identity, again.group],
        [user.uid, ''],
        'a registered user without provider and invite gets no role',
      );
    });

    it('registers a user once when many requests are concurrent', async () => {
      const issuer = 'https://busy.example.com';
      await server.newProvider(issuer, 'client', team);
      const { token, uid } = server.unregisteredUser({ issuer, audiences: ['client'] });
      const sessions = await Promise.all(Array.from({ length: 8 }, () => register(token)));
      for (const session of sessions) assert.deepEqual([session.identity, session.group], [uid, team]);
      assert.equal((await bindingsOf(server.store.reader, uid)).length, 1);
    });
  });
}
