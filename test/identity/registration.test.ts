import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import type { Identity } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { bindingsOf, roleBindings } from '../../src/domains/iam/roles/role-bindings.ts';
import { find } from '../../src/resource/read.ts';
import { deleteOne } from '../../src/resource/write.ts';
import { databases } from '../support/databases.ts';
import { type House, ISSUER, OURS, openHouse, refused } from './server-parts.ts';

const EVENTS = `SELECT subject, scope, body, body_type FROM outbox
  WHERE type = 'dev.chainguard.api.auth.registered.v1' ORDER BY id`;

for (const database of databases) {
  describe(`Register on ${database.name}`, () => {
    let house: House;
    let team: string;
    const register = (token: string | undefined, request: { code?: string; identityId?: string } = {}) =>
      house.ask(Auth.method.register, token, request);
    const events = async () => {
      const rows = await house.store.reader.all<Record<'subject' | 'scope' | 'body' | 'body_type', string>>(EVENTS);
      return rows.map((row) => ({ ...row, body: JSON.parse(row.body) }));
    };

    before(async () => {
      house = await openHouse(database);
      ({ team } = house);
    });
    after(() => house.close());

    it('lets nobody in without an invite or a provider', async () => {
      const { token, uid } = house.newcomer();
      await assert.rejects(register(token), refused(Code.PERMISSION_DENIED, /an invite is needed/));
      await assert.rejects(register(token, { code: 'nonsense' }), refused(Code.PERMISSION_DENIED, /no such invite/));
      assert.equal(await find(house.store.reader, identities, uid), undefined);
      await assert.rejects(register(undefined), refused(Code.UNAUTHENTICATED, /send a token/));
      await assert.rejects(register('nonsense'), refused(Code.UNAUTHENTICATED, /signature/));
    });

    it('makes a person of whoever has an invite, under the uid that was known before', async () => {
      const before = (await events()).length;
      const { token, uid, subject } = house.newcomer({ email: { address: 'Bob.Ö@Example.com', verified: true } });
      const session = await register(token, { code: await house.newInvite(), identityId: uid });
      assert.deepEqual([session.identity, session.group], [uid, team]);
      const stored = (await find(house.store.reader, identities, uid)) ?? assert.fail();
      const identity = stored.message as Identity;
      assert.equal(stored.parent, ROOT);
      assert.equal(identity.name, 'bob.-example.com');
      assert.deepEqual([identity.email, identity.emailUnverified], ['Bob.Ö@Example.com', '']);
      assert.deepEqual(identity.lastSeenTime, timestampFromMs(house.time.now));
      assert.ok(identity.relationship.case === 'claimMatch');
      const { iss, sub, aud } = identity.relationship.value;
      assert.deepEqual([iss.value, sub.value, aud.value], [ISSUER, subject, undefined]);
      const [binding, ...more] = await bindingsOf(house.store.reader, uid);
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

    it('keeps an address that nobody has verified apart', async () => {
      const { token, uid } = house.newcomer({ email: { address: 'eve@example.com', verified: false } });
      await assert.rejects(
        register(token, { code: await house.newInvite('eve@example.com') }),
        refused(Code.PERMISSION_DENIED, /none that is verified/),
      );
      await register(token, { code: await house.newInvite() });
      const identity = (await find(house.store.reader, identities, uid))?.message as Identity;
      assert.deepEqual([identity.email, identity.emailUnverified], ['', 'eve@example.com']);
    });

    it('takes an invite once, and refuses another uid and one of our own tokens', async () => {
      const code = await house.newInvite();
      const { token } = house.newcomer();
      await assert.rejects(
        register(token, { code, identityId: newUid(ROOT) }),
        refused(Code.INVALID_ARGUMENT, /identity_id: must be [0-9a-f]{40}/),
      );
      await assert.rejects(
        register((await house.member()).token, { code }),
        refused(Code.PERMISSION_DENIED, /one of ours/),
      );
      assert.equal((await register(token, { code })).group, team, 'none of that used it up');
      await assert.rejects(
        register(house.newcomer().token, { code }),
        refused(Code.PERMISSION_DENIED, /no such invite/),
      );
    });

    it('undoes the identity when the invite is refused', async () => {
      const { token, uid } = house.newcomer({ email: { address: 'a@example.com', verified: true } });
      const code = await house.newInvite('b@example.com');
      await assert.rejects(register(token, { code }), refused(Code.PERMISSION_DENIED, /another e-mail address/));
      assert.equal(await find(house.store.reader, identities, uid), undefined);
    });

    it('lets in whoever comes from an identity provider, with its default role', async () => {
      const issuer = 'https://idp.example.com';
      await house.newProvider(issuer, 'our client', team);
      const { token, uid } = house.newcomer({ issuer, audiences: ['our client'] });
      const before = (await events()).length;
      const first = await register(token);
      assert.deepEqual([first.identity, first.group], [uid, team]);
      assert.equal((await bindingsOf(house.store.reader, uid)).length, 1);
      assert.deepEqual(await register(token), first, 'again changes nothing');
      assert.equal((await events()).length, before + 1);

      const [binding = assert.fail()] = await bindingsOf(house.store.reader, uid);
      await house.store.write((tx) => deleteOne(tx, roleBindings, binding));
      assert.deepEqual(await register(token), first);
      assert.deepEqual(await bindingsOf(house.store.reader, uid), [], 'what was taken away does not come back');

      const stranger = house.newcomer({ issuer, audiences: [OURS, 'another client'] });
      await assert.rejects(register(stranger.token), refused(Code.PERMISSION_DENIED, /an invite is needed/));
    });

    it('prefers the oldest provider of a client, so that a copy diverts nobody', async () => {
      const issuer = 'https://popular.example.com';
      const elsewhere = newUid(ROOT);
      await house.newGroup('elsewhere', elsewhere, ROOT);
      await house.newProvider(issuer, 'client', team);
      house.time.now += 1;
      await house.newProvider(issuer, 'client', elsewhere);
      assert.equal((await register(house.newcomer({ issuer, audiences: ['client'] }).token)).group, team);
    });

    it('takes those who are in already into a further group', async () => {
      const issuer = 'https://second.example.com';
      await house.newProvider(issuer, 'client', team);
      const { token, uid } = house.newcomer({ issuer, audiences: ['client'] });
      await register(token, { code: await house.newInvite() });
      assert.equal((await register(token)).group, team);
      assert.equal(
        (await bindingsOf(house.store.reader, uid)).length,
        1,
        'the same role on the same group is one binding',
      );
      const lone = house.newcomer();
      await register(lone.token, { code: await house.newInvite() });
      const again = await register(lone.token);
      assert.deepEqual([again.identity, again.group], [lone.uid, ''], 'who is in and asks for nothing gets nothing');
    });

    it('registers a person once, however often at the same time', async () => {
      const issuer = 'https://busy.example.com';
      await house.newProvider(issuer, 'client', team);
      const { token, uid } = house.newcomer({ issuer, audiences: ['client'] });
      const sessions = await Promise.all(Array.from({ length: 8 }, () => register(token)));
      for (const session of sessions) assert.deepEqual([session.identity, session.group], [uid, team]);
      assert.equal((await bindingsOf(house.store.reader, uid)).length, 1);
    });
  });
}
