import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type DataLocation, databases } from '../../../test/support/databases.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { capabilitySetOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { LOGIN_LIFETIME_MS } from './lifetimes.ts';
import { createRefreshTokens, type Login, type RefreshTokens } from './refresh-tokens.ts';

const START = Date.UTC(2026, 0, 1) + 250;
const refused = (message: RegExp) => ({ name: 'ApiError', code: Code.UNAUTHENTICATED, message });
const EXPIRED_OR_REVOKED = refused(/expired or was revoked; log in again/);
const REUSED = refused(/was used before.*its login was ended/);

const unrestricted: Login = { identity: newUid(ROOT), authenticatedAt: START, credentialFingerprint: 'fingerprint' };
const restricted: Login = {
  ...unrestricted,
  scopes: [newUid(ROOT)],
  capabilities: capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST]),
  act: { iss: 'https://issuer.example.com', sub: 'alice', aud: 'a' },
  email: { address: 'alice@example.com', verified: true },
};

for (const database of databases) {
  describe(`refresh tokens of two servers on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    let otherStore: Store;
    let refreshTokens: RefreshTokens;
    let otherRefreshTokens: RefreshTokens;
    let now = START;
    const clock = () => now;
    const rows = async () =>
      (await store.reader.get<{ n: number }>('SELECT count(*) AS n FROM refresh_family'))?.n ?? assert.fail();

    before(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
      otherStore = await openStore(home);
      refreshTokens = createRefreshTokens({ store, clock });
      otherRefreshTokens = createRefreshTokens({ store: otherStore, clock });
    });
    after(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    it('give their login, any number of times', async () => {
      for (const login of [unrestricted, restricted]) {
        const { token, session } = await refreshTokens.issue(login);
        for (const server of [refreshTokens, otherRefreshTokens, refreshTokens]) {
          assert.deepEqual(await server.findLogin(token), { capabilities: undefined, ...login, session });
        }
      }
    });

    it('have the form that existing clients expect: padded base64 of JSON with an integer exp', async () => {
      for (let i = 0; i < 3; i++) {
        const { token, expires } = await refreshTokens.issue(unrestricted);
        assert.match(token, /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/);
        const { exp, ...rest } = JSON.parse(Buffer.from(token, 'base64').toString());
        assert.equal(exp, Math.floor(expires / 1000));
        assert.deepEqual(Object.keys(rest).sort(), ['id', 'secret']);
      }
    });

    it('are stored as hashes only', async () => {
      const { token } = await refreshTokens.issue(unrestricted);
      const { id, secret } = JSON.parse(Buffer.from(token, 'base64').toString());
      const row = await store.reader.get('SELECT * FROM refresh_family WHERE id = $1', id);
      assert.match(String(row?.secret_hash), /^[0-9a-f]{64}$/);
      assert.ok(!JSON.stringify(row).includes(secret));
    });

    it('have a stored login with the property names of earlier versions', async () => {
      const { token } = await refreshTokens.issue(restricted);
      const { id } = JSON.parse(Buffer.from(token, 'base64').toString());
      const row = await store.reader.get<{ session: string }>('SELECT session FROM refresh_family WHERE id = $1', id);
      const properties = Object.keys(JSON.parse(row?.session ?? ''));
      assert.deepEqual(properties.sort(), ['act', 'authenticated', 'cap', 'email', 'proof', 'scopes']);
    });

    it('are valid once: each rotation gives the next one, with the same expiry time', async () => {
      const first = await refreshTokens.issue(restricted);
      assert.equal(first.expires, START + LOGIN_LIFETIME_MS);
      const before = await rows();
      let { token } = first;
      for (const server of [refreshTokens, otherRefreshTokens, refreshTokens, otherRefreshTokens]) {
        const next = await server.rotate(token);
        assert.notEqual(next.token, token);
        assert.equal(next.expires, first.expires);
        token = next.token;
        assert.deepEqual(await server.findLogin(token), { ...restricted, session: first.session });
      }
      assert.equal(await rows(), before, 'a login is one row, after any number of rotations');
    });

    it('end the whole login when one is used again', async () => {
      for (const use of [
        refreshTokens.rotate,
        refreshTokens.findLogin,
        otherRefreshTokens.rotate,
        otherRefreshTokens.findLogin,
      ]) {
        const bystander = await refreshTokens.issue(unrestricted);
        const { token: first } = await refreshTokens.issue(unrestricted);
        const { token: second } = await otherRefreshTokens.rotate(first);
        const { token: third } = await refreshTokens.rotate(second);
        await assert.rejects(use(first), REUSED);
        for (const token of [first, second, third]) {
          await assert.rejects(refreshTokens.rotate(token), EXPIRED_OR_REVOKED);
          await assert.rejects(otherRefreshTokens.findLogin(token), EXPIRED_OR_REVOKED);
        }
        assert.ok(await refreshTokens.findLogin(bystander.token), 'other logins of the same identity stay valid');
      }
    });

    it('can be rotated by exactly one of many concurrent requests', async () => {
      const { token } = await refreshTokens.issue(unrestricted);
      const uses = Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? refreshTokens : otherRefreshTokens).rotate(token),
      );
      const outcomes = await Promise.allSettled(uses);
      const winners = outcomes.filter((outcome) => outcome.status === 'fulfilled');
      assert.equal(winners.length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') continue;
        assert.ok(outcome.reason instanceof ApiError && outcome.reason.code === Code.UNAUTHENTICATED, outcome.reason);
      }
      await assert.rejects(refreshTokens.findLogin(winners[0]?.value.token ?? ''), EXPIRED_OR_REVOKED);
    });

    it('are refused with a wrong secret', async () => {
      const { token } = await refreshTokens.issue(unrestricted);
      const parts = JSON.parse(Buffer.from(token, 'base64').toString());
      const forged = (changes: object) => Buffer.from(JSON.stringify({ ...parts, ...changes })).toString('base64');
      await assert.rejects(refreshTokens.rotate(forged({ id: '0'.repeat(32) })), EXPIRED_OR_REVOKED);
      assert.deepEqual(
        (await refreshTokens.findLogin(forged({ exp: 1 }))).identity,
        unrestricted.identity,
        'only clients read exp',
      );
      await assert.rejects(refreshTokens.rotate(forged({ secret: 'A'.repeat(43) })), REUSED);
    });

    it('are refused when they are malformed', async () => {
      const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
      const wrong = ['', 'x', '{}', 'a.b.c', json({}), json(null), json([1]), json('x'), json({ id: 1, secret: 2 })];
      wrong.push(json({ id: '\0'.repeat(32), secret: '' }), json({ id: 'f'.repeat(32) }), 'A'.repeat(100_000));
      for (const token of wrong) {
        for (const use of [refreshTokens.findLogin, refreshTokens.rotate]) {
          await assert.rejects(use(token), refused(/send a refresh token as/), token.slice(0, 50));
        }
      }
    });

    it('expire 30 days after the login, rotated or not, and are deleted then', async () => {
      const idle = await refreshTokens.issue(unrestricted);
      const busy = await refreshTokens.issue(unrestricted);
      now = START + LOGIN_LIFETIME_MS - 1;
      const { token } = await refreshTokens.rotate(busy.token);
      assert.ok(await refreshTokens.findLogin(idle.token));
      now = START + LOGIN_LIFETIME_MS;
      for (const expired of [token, idle.token]) {
        await assert.rejects(refreshTokens.findLogin(expired), EXPIRED_OR_REVOKED);
        await assert.rejects(refreshTokens.rotate(expired), EXPIRED_OR_REVOKED);
      }
      assert.ok((await rows()) > 1);
      await otherRefreshTokens.issue({ ...unrestricted, authenticatedAt: now });
      assert.equal(await rows(), 1);
      now = START;
    });
  });
}
