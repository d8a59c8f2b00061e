import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { databases, type Home } from '../../../test/support/databases.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { setOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { LOGIN_LIFETIME_MS } from './lifetimes.ts';
import { createRefreshTokens, type Login, type RefreshTokens } from './refresh-tokens.ts';

const START = Date.UTC(2026, 0, 1) + 250;
const refused = (message: RegExp) => ({ name: 'ApiError', code: Code.UNAUTHENTICATED, message });
const OVER = refused(/expired or was revoked; log in again/);
const REUSED = refused(/was used before.*its login has ended/);

const whole: Login = { identity: newUid(ROOT), authenticated: START, proof: 'a proof' };
const narrow: Login = {
  ...whole,
  scopes: [newUid(ROOT)],
  capabilities: setOf([Capability.CAP_IAM_GROUPS_LIST]),
  act: { iss: 'https://issuer.example.com', sub: 'alice', aud: 'a' },
  email: { address: 'alice@example.com', verified: true },
};

for (const database of databases) {
  describe(`refresh tokens of two servers on ${database.name}`, () => {
    let home: Home;
    let store: Store;
    let otherStore: Store;
    let tokens: RefreshTokens;
    let otherTokens: RefreshTokens;
    let now = START;
    const clock = () => now;
    const rows = async () =>
      (await store.reader.get<{ n: number }>('SELECT count(*) AS n FROM refresh_family'))?.n ?? assert.fail();

    before(async () => {
      home = await database.home();
      store = await openStore(home);
      otherStore = await openStore(home);
      tokens = createRefreshTokens({ store, clock });
      otherTokens = createRefreshTokens({ store: otherStore, clock });
    });
    after(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    it('stand for their login, as often as one looks', async () => {
      for (const login of [whole, narrow]) {
        const { token } = await tokens.issue(login);
        for (const server of [tokens, otherTokens, tokens]) {
          assert.deepEqual(await server.find(token), { capabilities: undefined, ...login });
        }
      }
    });

    it('look as existing clients expect: padded base64 of JSON with an integer exp', async () => {
      for (let i = 0; i < 3; i++) {
        const { token, expires } = await tokens.issue(whole);
        assert.match(token, /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/);
        const { exp, ...rest } = JSON.parse(Buffer.from(token, 'base64').toString());
        assert.equal(exp, Math.floor(expires / 1000));
        assert.deepEqual(Object.keys(rest).sort(), ['id', 'secret']);
      }
    });

    it('are stored as hashes only', async () => {
      const { token } = await tokens.issue(whole);
      const { id, secret } = JSON.parse(Buffer.from(token, 'base64').toString());
      const row = await store.reader.get('SELECT * FROM refresh_family WHERE id = $1', id);
      assert.match(String(row?.secret_hash), /^[0-9a-f]{64}$/);
      assert.ok(!JSON.stringify(row).includes(secret));
    });

    it('are good once; each use gives the next, until the end of the login', async () => {
      const first = await tokens.issue(narrow);
      assert.equal(first.expires, START + LOGIN_LIFETIME_MS);
      const before = await rows();
      let { token } = first;
      for (const server of [tokens, otherTokens, tokens, otherTokens]) {
        const next = await server.renew(token);
        assert.notEqual(next.token, token);
        assert.equal(next.expires, first.expires);
        token = next.token;
        assert.deepEqual(await server.find(token), narrow);
      }
      assert.equal(await rows(), before, 'a login is one row, however long it goes on');
    });

    it('end the whole login when one is used again, on either path', async () => {
      for (const use of [tokens.renew, tokens.find, otherTokens.renew, otherTokens.find]) {
        const bystander = await tokens.issue(whole);
        const { token: first } = await tokens.issue(whole);
        const { token: second } = await otherTokens.renew(first);
        const { token: third } = await tokens.renew(second);
        await assert.rejects(use(first), REUSED);
        for (const token of [first, second, third]) {
          await assert.rejects(tokens.renew(token), OVER);
          await assert.rejects(otherTokens.find(token), OVER);
        }
        assert.ok(await tokens.find(bystander.token), 'other logins of the same identity go on');
      }
    });

    it('let exactly one of many uses at the same time win', async () => {
      const { token } = await tokens.issue(whole);
      const uses = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? tokens : otherTokens).renew(token));
      const outcomes = await Promise.allSettled(uses);
      const winners = outcomes.filter((outcome) => outcome.status === 'fulfilled');
      assert.equal(winners.length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') continue;
        assert.ok(outcome.reason instanceof ApiError && outcome.reason.code === Code.UNAUTHENTICATED, outcome.reason);
      }
      await assert.rejects(tokens.find(winners[0]?.value.token ?? ''), OVER);
    });

    it('are refused with a secret that never was', async () => {
      const { token } = await tokens.issue(whole);
      const parts = JSON.parse(Buffer.from(token, 'base64').toString());
      const forged = (changes: object) => Buffer.from(JSON.stringify({ ...parts, ...changes })).toString('base64');
      await assert.rejects(tokens.renew(forged({ id: '0'.repeat(32) })), OVER);
      assert.deepEqual((await tokens.find(forged({ exp: 1 }))).identity, whole.identity, 'exp is for clients alone');
      await assert.rejects(tokens.renew(forged({ secret: 'A'.repeat(43) })), REUSED);
    });

    it('are refused when they are anything else', async () => {
      const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
      const wrong = ['', 'x', '{}', 'a.b.c', json({}), json(null), json([1]), json('x'), json({ id: 1, secret: 2 })];
      wrong.push(json({ id: '\0'.repeat(32), secret: '' }), json({ id: 'f'.repeat(32) }), 'A'.repeat(100_000));
      for (const token of wrong) {
        for (const use of [tokens.find, tokens.renew]) {
          await assert.rejects(use(token), refused(/send a refresh token as/), token.slice(0, 50));
        }
      }
    });

    it('end 30 days after the login, renewed or not, and are forgotten then', async () => {
      const idle = await tokens.issue(whole);
      const busy = await tokens.issue(whole);
      now = START + LOGIN_LIFETIME_MS - 1;
      const { token } = await tokens.renew(busy.token);
      assert.ok(await tokens.find(idle.token));
      now = START + LOGIN_LIFETIME_MS;
      for (const over of [token, idle.token]) {
        await assert.rejects(tokens.find(over), OVER);
        await assert.rejects(tokens.renew(over), OVER);
      }
      assert.ok((await rows()) > 1);
      await otherTokens.issue({ ...whole, authenticated: now });
      assert.equal(await rows(), 1);
      now = START;
    });
  });
}
