import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../src/domains/iam/identities/identities.ts';
import { bindingsOf } from '../../src/domains/iam/roles/role-bindings.ts';
import { find } from '../../src/resource/read.ts';
import { databases } from '../support/databases.ts';
import { type House, OURS, OWNER, openHouse, refused, viewer } from './server-parts.ts';

for (const database of databases) {
  describe(`Validate on ${database.name}`, () => {
    let house: House;
    let org: string;
    let team: string;
    const validate = (token: string) => house.ask(Auth.method.validate, token, {});

    before(async () => {
      house = await openHouse(database);
      ({ org, team } = house);
    });
    after(() => house.close());

    it('explains a token: who, for whom, until when, and what it allows where', async () => {
      const { uid, token } = await house.member();
      await house.bind(uid, org, viewer.uid);
      await house.bind(uid, team, OWNER.uid);
      const who = await validate(token);
      assert.equal(who.issuer, OURS);
      assert.equal(who.subject, uid);
      assert.deepEqual(who.audience, [OURS]);
      assert.equal(timestampMs(who.issuedAt ?? assert.fail()), house.time.now);
      assert.ok(timestampMs(who.expiry ?? assert.fail()) >= house.time.now + 3_600_000);
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

    it('shows a narrow token as narrow as it is', async () => {
      const { uid, token } = await house.member();
      await house.bind(uid, org, viewer.uid);
      const other = newUid(ROOT);
      const shown = async (narrowing: object) =>
        (await validate(await house.exchange(token, narrowing))).capabilities.map(({ group, capabilities }) => [
          group?.id,
          group?.name,
          capabilities.length,
        ]);
      const [all] = (await validate(token)).capabilities;
      assert.deepEqual(await shown({ cap: ['groups.list', 'groups.create'] }), [[org, 'organization', 1]]);
      assert.deepEqual(await shown({ scopes: [team] }), [[team, 'team', all?.capabilities.length]]);
      assert.deepEqual(await shown({ scopes: [team, other], cap: ['groups.list'] }), [[team, 'team', 1]]);
      assert.deepEqual(await shown({ scopes: [other] }), []);
    });

    it('knows that an identity inside a group never reaches out of it', async () => {
      const { uid, token } = await house.member(team);
      await house.bind(uid, org, viewer.uid);
      await house.bind(uid, team, viewer.uid);
      assert.deepEqual(
        (await validate(token)).capabilities.map(({ group }) => group?.id),
        [team],
      );
    });

    it('tells the e-mail address that is known', async () => {
      const { token } = house.newcomer({ email: { address: 'alice@example.com', verified: true } });
      await house.ask(Auth.method.register, token, { code: await house.newInvite() });
      assert.equal((await validate(await house.exchange(token))).email, 'alice@example.com');
      assert.equal((await validate((await house.member()).token)).email, '');
    });

    it('asks for a valid token', async () => {
      await assert.rejects(validate('nonsense'), refused(Code.UNAUTHENTICATED, /./));
    });
  });

  describe(`Delete on ${database.name}`, () => {
    let house: House;
    let org: string;
    let team: string;
    const validate = (token: string) => house.ask(Auth.method.validate, token, {});

    before(async () => {
      house = await openHouse(database);
      ({ org, team } = house);
    });
    after(() => house.close());

    const leave = (token: string, id: string) => house.ask(Auth.method.delete, token, { id });

    it('removes the caller and its bindings, and its tokens are worth nothing', async () => {
      const { uid, upstream, token } = await house.member();
      await house.bind(uid, org, viewer.uid);
      await leave(token, uid);
      assert.equal(await find(house.store.reader, identities, uid), undefined);
      assert.deepEqual(await bindingsOf(house.store.reader, uid), []);
      await assert.rejects(validate(token), refused(Code.UNAUTHENTICATED, /was deleted/));
      await assert.rejects(house.exchange(upstream), refused(Code.PERMISSION_DENIED, /invalid "iss"/));
    });

    it('removes nobody else, and nobody who belongs to a group', async () => {
      const { token } = await house.member();
      const { uid: other } = await house.member();
      for (const id of [other, newUid(ROOT)]) {
        await assert.rejects(leave(token, id), refused(Code.PERMISSION_DENIED, /only the own identity/));
      }
      for (const id of ['', 'nonsense']) {
        await assert.rejects(leave(token, id), refused(Code.INVALID_ARGUMENT, /id: must be the uid/));
      }
      const machine = await house.member(team);
      await assert.rejects(leave(machine.token, machine.uid), refused(Code.PERMISSION_DENIED, /only the own identity/));
      assert.ok(await find(house.store.reader, identities, other));
    });

    it('is not for narrow tokens', async () => {
      const { uid, token } = await house.member();
      for (const narrowing of [{ scopes: [org] }, { cap: ['groups.list'] }]) {
        const narrow = await house.exchange(token, narrowing);
        await assert.rejects(leave(narrow, uid), refused(Code.PERMISSION_DENIED, /narrowed/));
      }
      assert.ok(await find(house.store.reader, identities, uid));
    });
  });
}
