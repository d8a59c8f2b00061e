import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { SessionsService } from '../../../src/contract/gen/wharfinger/iam/v1/sessions_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole } from '../../support/callers.ts';
import {
  ALLOW_TEST_ISSUERS,
  newPerson,
  newRegistryToken,
  newTestProvider,
  registryStatus,
} from '../../support/people.ts';
import { rejects } from '../../support/rejects.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;
const { validate } = Auth.method;
const { deleteSession, endSessions, listSessions } = SessionsService.method;

/** Moves with `passed`, because times of issue are whole seconds. */
let passed = 0;
const clock = () => Date.now() + passed;

onEveryDatabaseAndWire(
  'a session that its owner or an operator has ended',
  (fixture) => {
    const aud = () => [fixture.server.url];

    /** Logs in and returns all tokens of the session. */
    async function logIn(upstream: string) {
      const { token, refreshToken } = await fixture.as(upstream).call(exchange, { aud: aud() });
      const exchanged = await fixture.as(token).call(exchange, { aud: aud() });
      const registryToken = await newRegistryToken(fixture.server.url, token);
      return { token, accessTokens: [token, exchanged.token], refreshToken, registryToken };
    }
    type Login = Awaited<ReturnType<typeof logIn>>;

    async function assertEnded({ accessTokens, refreshToken, registryToken }: Login): Promise<void> {
      for (const token of accessTokens) {
        await rejects(fixture.as(token).call(validate), Code.UNAUTHENTICATED, ({ message }) =>
          assert.match(message, /log in again/),
        );
        await rejects(fixture.as(token).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED);
      }
      await rejects(fixture.as(refreshToken).call(exchangeRefreshToken, { aud: aud() }), Code.UNAUTHENTICATED);
      assert.equal(await registryStatus(fixture.server.url, registryToken), 401);
    }

    async function assertOpen({ accessTokens, registryToken }: Login): Promise<void> {
      for (const token of accessTokens) await fixture.as(token).call(validate);
      assert.equal(await registryStatus(fixture.server.url, registryToken), 200);
    }

    const sessionsOf = async (login: Login) => (await fixture.as(login.token).call(listSessions)).sessions;

    test('the tokens of one ended session are refused, and other sessions stay open', async () => {
      const caller = await callerWithRole(fixture.server, 'viewer', fixture.org);
      const stolen = await logIn(await caller.token());
      const own = await logIn(await caller.token());
      const sessions = await sessionsOf(own);
      assert.equal(sessions.length, 2);
      for (const session of sessions) {
        assert.deepEqual([session.identity, session.issuer], [caller.uid, 'https://issuer.test']);
        assert.ok(session.address !== '' && session.createTime && session.expireTime && session.lastUseTime);
      }
      await assertOpen(stolen);
      const target = sessions.find(({ current }) => !current) ?? assert.fail();
      await fixture.as(own.token).call(deleteSession, { uid: target.uid });
      await assertEnded(stolen);
      await assertOpen(own);
      await rejects(fixture.as(own.token).call(deleteSession, { uid: target.uid }), Code.NOT_FOUND);
      assert.equal((await sessionsOf(own)).length, 1);
    });

    test('when all sessions are ended, all tokens from before are refused, also those of other issuers', async () => {
      passed = 0;
      const caller = await callerWithRole(fixture.server, 'viewer', fixture.org);
      const upstream = await caller.token();
      const logins = [await logIn(upstream), await logIn(upstream)];
      const withoutSession = await newRegistryToken(fixture.server.url, upstream);
      assert.equal(await registryStatus(fixture.server.url, withoutSession), 200);
      passed = 2000;
      const { ended } = await fixture.api.call(endSessions, { identity: caller.uid });
      assert.equal(ended, 2);
      for (const login of logins) await assertEnded(login);
      assert.equal(await registryStatus(fixture.server.url, withoutSession), 401);
      await rejects(fixture.as(upstream).call(validate), Code.UNAUTHENTICATED);
      await rejects(fixture.as(upstream).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED);
      assert.deepEqual((await fixture.api.call(listSessions, { identity: caller.uid })).sessions, []);
    });

    test('an operator ends the sessions of a person', async (t) => {
      passed = 0;
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const login = await logIn(person.upstream);
      const { sessions } = await fixture.api.call(listSessions, { identity: person.uid });
      assert.deepEqual(
        sessions.map(({ identity, issuer }) => [identity, issuer]),
        [[person.uid, provider.issuer]],
      );
      await fixture.api.call(deleteSession, { uid: sessions[0]?.uid ?? '' });
      await assertEnded(login);
      await assertOpen(await logIn(person.upstream));
    });

    test('an identity sees and ends the sessions of others only with the capability', async (t) => {
      passed = 0;
      const group = await fixture.newGroup();
      const target = await callerWithRole(fixture.server, 'viewer', group);
      const login = await logIn(await target.token());
      const [session] = await sessionsOf(login);
      const uid = session?.uid ?? assert.fail();
      const person = await newPerson(fixture, await newTestProvider(fixture, t));
      const personLogin = await logIn(person.upstream);
      const [personSession] = await sessionsOf(personLogin);

      const elsewhere = await callerWithRole(fixture.server, 'owner', await fixture.newGroup());
      const viewer = await callerWithRole(fixture.server, 'viewer', group);
      for (const caller of [elsewhere, viewer]) {
        const client = fixture.as(await caller.token());
        await rejects(client.call(listSessions, { identity: target.uid }), Code.PERMISSION_DENIED);
        await rejects(client.call(deleteSession, { uid }), Code.PERMISSION_DENIED);
        await rejects(client.call(endSessions, { identity: target.uid }), Code.PERMISSION_DENIED);
      }
      const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
      await rejects(owner.call(deleteSession, { uid: personSession?.uid ?? '' }), Code.PERMISSION_DENIED);
      await rejects(owner.call(endSessions, { identity: person.uid }), Code.PERMISSION_DENIED);
      assert.equal((await owner.call(listSessions, { identity: target.uid })).sessions.length, 1);
      await owner.call(deleteSession, { uid });
      await assertEnded(login);
      await assertOpen(personLogin);
    });

    test('a token that is restricted to other capabilities can end its own session only', async () => {
      passed = 0;
      const caller = await callerWithRole(fixture.server, 'viewer', fixture.org);
      const other = await logIn(await caller.token());
      const narrow = await fixture.as(await caller.token()).call(exchange, { aud: aud(), cap: ['groups.list'] });
      const client = fixture.as(narrow.token);
      await rejects(client.call(listSessions), Code.PERMISSION_DENIED);
      await rejects(client.call(endSessions, { identity: caller.uid }), Code.PERMISSION_DENIED);
      const sessions = await sessionsOf(other);
      const [own, another] = [sessions.find(({ current }) => !current), sessions.find(({ current }) => current)];
      await rejects(client.call(deleteSession, { uid: another?.uid ?? '' }), Code.PERMISSION_DENIED);
      await client.call(deleteSession, { uid: own?.uid ?? '' });
      await rejects(client.call(validate), Code.UNAUTHENTICATED);
      await assertOpen(other);
    });

    test('sessions are listed in pages', async () => {
      passed = 0;
      const caller = await callerWithRole(fixture.server, 'viewer', fixture.org);
      const client = fixture.as(await caller.token());
      for (let i = 0; i < 5; i++) await client.call(exchange, { aud: aud() });
      const found = new Set<string>();
      for (let pageToken = ''; ; ) {
        const page = await client.call(listSessions, { pageSize: 2, pageToken });
        for (const { uid } of page.sessions) found.add(uid);
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      assert.equal(found.size, 5);
    });
  },
  { env: ALLOW_TEST_ISSUERS, clock },
);
