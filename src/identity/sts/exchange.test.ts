import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { clone, create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { decodeJwt } from 'jose';
import { databases } from '../../../test/support/databases.ts';
import { anonymousCaller } from '../../access/caller.ts';
import { Code, denied, unauthenticated } from '../../base/errors.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type {
  ExchangeRefreshTokenRequestSchema,
  ExchangeRequestSchema,
  RawToken,
  TokenPair,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { files, methodTable } from '../../contract/method-table.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { find } from '../../resource/read.ts';
import { deleteOne, insert, update } from '../../resource/write.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { LOGIN_LIFETIME_MS, TOKEN_LIFETIME_MS } from '../tokens/lifetimes.ts';
import type { AuthenticateUpstream } from './exchange.ts';
import { createIssuer, type Issuer } from './issuer.ts';

const START = Date.UTC(2026, 0, 1);
const ISSUER = 'https://wharf.example.com';
const UPSTREAM = 'https://issuer.example.com';
const refused = (code: Code, message: RegExp) => ({ name: 'ApiError', code, message });
const methods = new Map(methodTable(files).map((method) => [method.desc.name, method]));

for (const database of databases) {
  describe(`token exchange on ${database.name}`, () => {
    let store: Store;
    let close: () => Promise<void>;
    let issuer: Issuer;
    let now = START;
    /** Who a third party's token speaks for. */
    const people = new Map<string, string>();

    const authenticateUpstream: AuthenticateUpstream = async (token, wanted) => {
      const identity = people.get(token);
      if (identity === undefined) throw unauthenticated('the signature of the token is not valid');
      if (wanted.identity !== undefined && wanted.identity !== identity) throw denied('invalid "sub" in the token');
      const email = { address: `${token}@example.com`, verified: true };
      return { identity, issuer: UPSTREAM, subject: token, audiences: [ISSUER, 'other'], email };
    };

    before(async () => {
      const home = await database.home();
      store = await openStore(home);
      close = async () => {
        await store.close();
        await home.remove();
      };
      issuer = await createIssuer({
        store,
        masterKey: randomBytes(32),
        clock: () => now,
        publicUrl: () => ISSUER,
        authenticateUpstream,
        verifyStranger: () => assert.fail(),
      });
    });
    after(() => close());

    async function newIdentity(relationship: Identity['relationship']): Promise<string> {
      const uid = newUid(ROOT);
      const message = create(IdentitySchema, { name: 'somebody', relationship });
      await store.write((tx) => insert(tx, identities, { message, uid, parent: ROOT }, now));
      return uid;
    }

    /** An identity, and the token that proves it. */
    async function person(): Promise<{ uid: string; token: string }> {
      const token = `person-${people.size}`;
      const value = { iss: { case: 'issuer', value: UPSTREAM }, sub: { case: 'subject', value: token } } as const;
      const { relationship } = create(IdentitySchema, { relationship: { case: 'claimMatch', value } });
      const uid = await newIdentity(relationship);
      people.set(token, uid);
      return { uid, token };
    }

    async function changeIdentity(uid: string, change: (identity: Identity) => void): Promise<void> {
      await store.write(async (tx) => {
        const stored = (await find(tx, identities, uid)) ?? assert.fail();
        const message = clone(IdentitySchema, stored.message as Identity);
        change(message);
        await update(tx, identities, stored, { message, state: stored.state }, now);
      });
    }

    const deleteIdentity = (uid: string) =>
      store.write(async (tx) => deleteOne(tx, identities, (await find(tx, identities, uid)) ?? assert.fail()));

    async function call(name: 'Exchange' | 'ExchangeRefreshToken', token: string | undefined, request: object) {
      const method = methods.get(name) ?? assert.fail();
      const operation = issuer.operations[method.id] ?? assert.fail();
      assert.equal(operation.mode, 'read', 'the network is asked outside of any transaction');
      const message = create(method.desc.input, request as never);
      const authorization = token === undefined ? undefined : `Bearer ${token}`;
      const ctx = { method, caller: anonymousCaller, authorization, now, db: store.reader };
      return (operation as { run: (...args: unknown[]) => unknown }).run(ctx, message);
    }
    const exchange = (token: string | undefined, request: MessageInitShape<typeof ExchangeRequestSchema> = {}) =>
      call('Exchange', token, { aud: [ISSUER], ...request }) as Promise<RawToken>;
    const refresh = (token: string, request: MessageInitShape<typeof ExchangeRefreshTokenRequestSchema> = {}) =>
      call('ExchangeRefreshToken', token, { aud: [ISSUER], ...request }) as Promise<TokenPair>;
    const verify = async (token: string) => (await issuer.tokens.verify(token)) ?? assert.fail();

    it("turns a third party's token into one of ours", async () => {
      const { uid, token } = await person();
      const answer = await exchange(token, { aud: ['a', 'b'] });
      const own = await verify(answer.token);
      assert.equal(own.identity, uid);
      assert.deepEqual(own.audiences, ['a', 'b']);
      assert.deepEqual(own.act, { iss: UPSTREAM, sub: token, aud: `${ISSUER},other` });
      assert.deepEqual(own.email, { address: `${token}@example.com`, verified: true });
      assert.equal(own.authenticated, now);
      assert.equal(timestampMs(answer.expiry ?? assert.fail()), own.expires);
      assert.ok(own.expires >= now + TOKEN_LIFETIME_MS);
      assert.deepEqual(Object.keys(answer).sort(), ['$typeName', 'expiry', 'refreshToken', 'token']);
    });

    it('narrows by scope, scopes and cap', async () => {
      const { token } = await person();
      const [one, other] = [newUid(ROOT), newUid(newUid(ROOT))];
      const answer = await exchange(token, { scope: one, scopes: [other], cap: ['groups.list'] });
      assert.deepEqual((await verify(answer.token)).scopes, [one, other]);
      assert.equal(typeof decodeJwt(answer.token).cap, 'string');
      const whole = decodeJwt((await exchange(token)).token);
      assert.ok(!('cap' in whole) && !('scopes' in whole));
    });

    it('asks for a token, and for one that is good', async () => {
      await assert.rejects(exchange(undefined), refused(Code.UNAUTHENTICATED, /send the token to exchange/));
      await assert.rejects(exchange(''), refused(Code.UNAUTHENTICATED, /send the token to exchange/));
      await assert.rejects(exchange('nonsense'), refused(Code.UNAUTHENTICATED, /signature/));
    });

    it('judges the request before it asks anybody about the token', async () => {
      await assert.rejects(exchange('nonsense', { aud: [] }), refused(Code.INVALID_ARGUMENT, /aud: is required/));
      for (const field of ['identity', 'identityProvider'] as const) {
        await assert.rejects(
          exchange('nonsense', { [field]: 'my-org' }),
          refused(Code.INVALID_ARGUMENT, /identity(_provider)?: must be a uid/),
        );
      }
    });

    it('assumes the identity that is named, if the token matches it', async () => {
      const { uid, token } = await person();
      const { uid: other } = await person();
      assert.equal((await verify((await exchange(token, { identity: uid })).token)).identity, uid);
      await assert.rejects(exchange(token, { identity: other }), refused(Code.PERMISSION_DENIED, /invalid "sub"/));
      await assert.rejects(
        exchange(token, { identity: newUid(ROOT) }),
        refused(Code.PERMISSION_DENIED, /invalid "iss"/),
      );
    });

    it('says plainly which kinds of identity cannot log in yet', async () => {
      const aws = create(IdentitySchema, {
        relationship: { case: 'awsIdentity', value: { awsAccount: '123456789012' } },
      });
      const principal = create(IdentitySchema, { relationship: { case: 'servicePrincipal', value: 2 } });
      for (const [{ relationship }, kind] of [
        [aws, 'AWS identities'],
        [principal, 'service principals'],
      ] as const) {
        await assert.rejects(
          exchange('proof', { identity: await newIdentity(relationship) }),
          refused(Code.PERMISSION_DENIED, new RegExp(`^Permission denied: ${kind} cannot log in on this server yet$`)),
        );
      }
    });

    it('re-scopes our own tokens, and never widens them', async () => {
      const { uid, token } = await person();
      const [org, other] = [newUid(ROOT), newUid(ROOT)];
      const team = newUid(org);
      const first = await exchange(token, { scopes: [org], cap: ['groups.list', 'roles.list'] });
      now += 60_000;
      const second = await exchange(first.token, {
        aud: [ISSUER, 'b'],
        scopes: [team],
        cap: ['groups.list'],
        identity: uid,
      });
      const own = await verify(second.token);
      assert.deepEqual(own.scopes, [team]);
      assert.deepEqual(own.audiences, [ISSUER, 'b']);
      assert.deepEqual(own.act, { iss: UPSTREAM, sub: token, aud: `${ISSUER},other` });
      assert.equal(own.authenticated, now - 60_000, 'the login is as old as it was');
      assert.deepEqual(
        await verify((await exchange(second.token, { aud: ['c'] })).token).then(({ scopes, capabilities }) => [
          scopes,
          capabilities,
        ]),
        [own.scopes, own.capabilities],
        'a wish for nothing in particular keeps the narrowing',
      );
      for (const request of [
        { scopes: [org] },
        { scopes: [other] },
        { scopes: [team, other] },
        { cap: ['roles.list'] },
      ]) {
        await assert.rejects(exchange(second.token, request), refused(Code.PERMISSION_DENIED, /not good (at|for)/));
      }
      const { uid: another } = await person();
      await assert.rejects(exchange(first.token, { identity: another }), refused(Code.PERMISSION_DENIED, /"sub"/));
      await assert.rejects(exchange(first.token, { identityProvider: uid }), refused(Code.PERMISSION_DENIED, /"iss"/));
    });

    it('is not for those who were handed a token that is meant for them', async () => {
      const { token } = await exchange((await person()).token, { aud: ['https://receiver.example.com'] });
      await assert.rejects(exchange(token), refused(Code.UNAUTHENTICATED, /invalid "aud".*somebody else/));
      const { token: shared } = await exchange((await person()).token, { aud: ['wharf.example.com', 'receiver'] });
      assert.ok(await exchange(shared), 'the host alone names this server too');
    });

    it('renews our own tokens for as long as the login lasts, and no longer', async () => {
      const { token } = await person();
      const began = now;
      let own = (await exchange(token)).token;
      for (let renewals = 0; renewals < 30; renewals++) {
        now += TOKEN_LIFETIME_MS - 1000;
        own = (await exchange(own)).token;
      }
      now = began + LOGIN_LIFETIME_MS - TOKEN_LIFETIME_MS / 2;
      const { refreshToken } = await exchange(token);
      const late = await issuer.tokens.mint({ ...(await verify((await exchange(token)).token)), authenticated: began });
      now = began + LOGIN_LIFETIME_MS;
      await assert.rejects(exchange(late.token), refused(Code.UNAUTHENTICATED, /too long ago; log in again/));
      assert.ok(await refresh(refreshToken), 'a later login goes on');
      now = began;
    });

    it('renews by a refresh token: both tokens nested, each with its end', async () => {
      const { uid, token } = await person();
      const org = newUid(ROOT);
      const { refreshToken } = await exchange(token, { scopes: [org], cap: ['groups.list', 'roles.list'] });
      now += 10 * TOKEN_LIFETIME_MS;
      const pair = await refresh(refreshToken, { aud: ['x'], cap: ['groups.list'] });
      const own = await verify(pair.token?.token ?? '');
      assert.equal(own.identity, uid);
      assert.deepEqual([own.audiences, own.scopes], [['x'], [org]]);
      assert.equal(own.act?.sub, token);
      assert.equal(timestampMs(pair.token?.expiry ?? assert.fail()), own.expires);
      assert.deepEqual(Object.keys(pair.refreshToken ?? {}).sort(), ['$typeName', 'expiry', 'refreshToken', 'token']);
      assert.equal(pair.refreshToken?.refreshToken, '');
      assert.equal(
        timestampMs(pair.refreshToken?.expiry ?? assert.fail()),
        now - 10 * TOKEN_LIFETIME_MS + LOGIN_LIFETIME_MS,
      );

      const next = await refresh(pair.refreshToken?.token ?? '', { cap: ['roles.list'] });
      assert.ok(next.token, 'narrowing one token does not narrow the login');
      await assert.rejects(refresh(refreshToken), refused(Code.UNAUTHENTICATED, /used before/));
      await assert.rejects(refresh(next.refreshToken?.token ?? ''), refused(Code.UNAUTHENTICATED, /log in again/));
    });

    it('a refusal costs no refresh token', async () => {
      const { token } = await person();
      const org = newUid(ROOT);
      const { refreshToken } = await exchange(token, { scopes: [org] });
      await assert.rejects(refresh(refreshToken, { aud: [] }), refused(Code.INVALID_ARGUMENT, /aud/));
      await assert.rejects(
        refresh(refreshToken, { scopes: [newUid(ROOT)] }),
        refused(Code.PERMISSION_DENIED, /not good at/),
      );
      await assert.rejects(refresh(refreshToken, { cap: ['nonsense'] }), refused(Code.INVALID_ARGUMENT, /cap/));
      assert.ok(await refresh(refreshToken));
    });

    it('lets one of many refreshes at the same time win', async () => {
      const { refreshToken } = await exchange((await person()).token);
      const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => refresh(refreshToken)));
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.equal(outcome.reason.code, Code.UNAUTHENTICATED, outcome.reason);
      }
    });

    it('takes tokens away with the identity, even when it comes back under the same uid', async () => {
      const { uid, token } = await person();
      const { token: own, refreshToken } = await exchange(token);
      const { message } = (await find(store.reader, identities, uid)) ?? assert.fail();
      await deleteIdentity(uid);
      for (const attempt of [() => refresh(refreshToken), () => exchange(own)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /was deleted/));
      }
      now += 1000;
      const again = clone(IdentitySchema, message as Identity);
      await store.write((tx) => insert(tx, identities, { message: again, uid, parent: ROOT }, now));
      for (const attempt of [() => refresh(refreshToken), () => exchange(own)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /was deleted/));
      }
      assert.ok(await exchange((await exchange(token)).token), 'a new login is good');
    });

    it('takes tokens away when the identity is proven in another way, not when it is renamed', async () => {
      const { uid, token } = await person();
      const { token: own, refreshToken } = await exchange(token);
      await changeIdentity(uid, (identity) => {
        identity.name = 'renamed';
        identity.lastSeenTime = timestampFromMs(now);
      });
      assert.ok(await exchange(own));
      const renewed = (await refresh(refreshToken)).refreshToken?.token ?? assert.fail();
      await changeIdentity(uid, ({ relationship }) => {
        if (relationship.case === 'claimMatch') relationship.value.sub = { case: 'subject', value: 'somebody else' };
      });
      for (const attempt of [() => refresh(renewed), () => exchange(own)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /proven in another way by now; log in again/));
      }
    });

    it('ends with the keys of an identity that has its own', async () => {
      const expirationTime = timestampFromMs(now + TOKEN_LIFETIME_MS / 2);
      const value = { issuer: UPSTREAM, subject: 'machine', issuerKeys: '{"keys":[]}', expirationTime };
      const uid = await newIdentity(
        create(IdentitySchema, { relationship: { case: 'staticKeys', value } }).relationship,
      );
      people.set('machine', uid);
      const { token, refreshToken } = await exchange('machine');
      now += TOKEN_LIFETIME_MS / 2;
      for (const attempt of [() => refresh(refreshToken), () => exchange(token)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /has expired/));
      }
    });
  });
}
