import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { clone, create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { decodeJwt } from 'jose';
import { databases } from '../../../test/support/databases.ts';
import { anonymousCaller } from '../../access/create-caller.ts';
import { Code, denied, unauthenticated } from '../../base/errors.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import type {
  ExchangeRefreshTokenRequestSchema,
  ExchangeRequestSchema,
  RawToken,
  TokenPair,
} from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { files, methodTable } from '../../contract/method-table.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { find } from '../../resource/read.ts';
import { deleteOne, insert, update } from '../../resource/write.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import type { AuthenticateFederated } from '../federation/federated-login.ts';
import { fixedMasterKeys } from '../master-key.testing.ts';
import { ACCESS_TOKEN_LIFETIME_MS, LOGIN_LIFETIME_MS } from '../tokens/lifetimes.ts';
import { createTokenIssuer, type TokenIssuer } from './token-issuer.ts';

const START = Date.UTC(2026, 0, 1);
const ISSUER = 'https://wharf.example.com';
const OTHER_ISSUER = 'https://issuer.example.com';
const refused = (code: Code, message: RegExp) => ({ name: 'ApiError', code, message });
const methods = new Map(methodTable(files).map((method) => [method.desc.name, method]));

for (const database of databases) {
  describe(`token exchange on ${database.name}`, () => {
    let store: Store;
    let close: () => Promise<void>;
    let issuer: TokenIssuer;
    let now = START;
    /** The identities that federated tokens authenticate. */
    const identityByToken = new Map<string, string>();

    const authenticateFederated: AuthenticateFederated = async (token, requested) => {
      const identity = identityByToken.get(token);
      if (identity === undefined) throw unauthenticated('the signature of the token is not valid');
      if (requested.identity !== undefined && requested.identity !== identity)
        throw denied('invalid "sub" in the token');
      const email = { address: `${token}@example.com`, verified: true };
      return { identity, issuer: OTHER_ISSUER, subject: token, audiences: [ISSUER, 'other'], expires: Infinity, email };
    };

    before(async () => {
      const home = await database.createDataLocation();
      store = await openStore(home);
      close = async () => {
        await store.close();
        await home.remove();
      };
      issuer = await createTokenIssuer({
        store,
        masterKeys: fixedMasterKeys(),
        clock: () => now,
        publicUrl: ISSUER,
        authenticateFederated,
        verifyUnregistered: () => assert.fail(),
      });
    });
    after(() => close());

    // People can log in for as long as an identity provider has their issuer.
    before(async () => {
      const configuration = { case: 'oidc', value: { issuer: OTHER_ISSUER, clientId: 'client' } } as const;
      const message = create(IdentityProviderSchema, { name: 'provider', configuration });
      const parent = newUid(ROOT);
      await store.write((tx) => insert(tx, identityProviders, { message, uid: newUid(parent), parent }, now));
    });

    async function newIdentity(relationship: Identity['relationship']): Promise<string> {
      const uid = newUid(ROOT);
      const message = create(IdentitySchema, { name: 'test', relationship });
      await store.write((tx) => insert(tx, identities, { message, uid, parent: ROOT }, now));
      return uid;
    }

    /** Creates an identity and a federated token that authenticates it. */
    async function newUser(): Promise<{ uid: string; token: string }> {
      const token = `user-${identityByToken.size}`;
      const value = { iss: { case: 'issuer', value: OTHER_ISSUER }, sub: { case: 'subject', value: token } } as const;
      const { relationship } = create(IdentitySchema, { relationship: { case: 'claimMatch', value } });
      const uid = await newIdentity(relationship);
      identityByToken.set(token, uid);
      return { uid, token };
    }

    async function changeIdentity(uid: string, change: (identity: Identity) => void): Promise<void> {
      await store.write(async (tx) => {
        const stored = (await find(tx, identities, uid)) ?? assert.fail();
        const message = clone(IdentitySchema, stored.message);
        change(message);
        await update(tx, identities, stored, { message, state: stored.state }, now);
      });
    }

    const deleteIdentity = (uid: string) =>
      store.write(async (tx) => deleteOne(tx, identities, (await find(tx, identities, uid)) ?? assert.fail()));

    async function call(name: 'Exchange' | 'ExchangeRefreshToken', token: string | undefined, request: object) {
      const method = methods.get(name) ?? assert.fail();
      const operation = issuer.operations[method.id] ?? assert.fail();
      assert.equal(operation.mode, 'read', 'requests to other servers are made outside of any transaction');
      const message = create(method.desc.input, request as never);
      const authorization = token === undefined ? undefined : `Bearer ${token}`;
      const ctx = { method, caller: anonymousCaller, authorization, now, db: store.reader };
      return (operation as { run: (...args: unknown[]) => unknown }).run(ctx, message);
    }
    const exchange = (token: string | undefined, request: MessageInitShape<typeof ExchangeRequestSchema> = {}) =>
      call('Exchange', token, { aud: [ISSUER], ...request }) as Promise<RawToken>;
    const refresh = (token: string, request: MessageInitShape<typeof ExchangeRefreshTokenRequestSchema> = {}) =>
      call('ExchangeRefreshToken', token, { aud: [ISSUER], ...request }) as Promise<TokenPair>;
    const verify = async (token: string) => (await issuer.accessTokens.verify(token)) ?? assert.fail();

    it('exchanges a federated token for an access token', async () => {
      const { uid, token } = await newUser();
      const response = await exchange(token, { aud: ['a', 'b'] });
      const accessToken = await verify(response.token);
      assert.equal(accessToken.identity, uid);
      assert.deepEqual(accessToken.audiences, ['a', 'b']);
      assert.deepEqual(accessToken.act, { iss: OTHER_ISSUER, sub: token, aud: `${ISSUER},other` });
      assert.deepEqual(accessToken.email, { address: `${token}@example.com`, verified: true });
      assert.equal(accessToken.authenticatedAt, now);
      assert.equal(timestampMs(response.expiry ?? assert.fail()), accessToken.expires);
      assert.ok(accessToken.expires >= now + ACCESS_TOKEN_LIFETIME_MS);
      assert.deepEqual(Object.keys(response).sort(), ['$typeName', 'expiry', 'refreshToken', 'token']);
    });

    it('restricts the token by scope, scopes and cap', async () => {
      const { token } = await newUser();
      const [one, other] = [newUid(ROOT), newUid(newUid(ROOT))];
      const response = await exchange(token, { scope: one, scopes: [other], cap: ['groups.list'] });
      assert.deepEqual((await verify(response.token)).scopes, [one, other]);
      assert.equal(typeof decodeJwt(response.token).cap, 'string');
      const unrestricted = decodeJwt((await exchange(token)).token);
      assert.ok(!('cap' in unrestricted) && !('scopes' in unrestricted));
    });

    it('requires a valid token', async () => {
      await assert.rejects(exchange(undefined), refused(Code.UNAUTHENTICATED, /send the token to exchange/));
      await assert.rejects(exchange(''), refused(Code.UNAUTHENTICATED, /send the token to exchange/));
      await assert.rejects(exchange('nonsense'), refused(Code.UNAUTHENTICATED, /signature/));
    });

    it('validates the request before it verifies the token', async () => {
      await assert.rejects(exchange('nonsense', { aud: [] }), refused(Code.INVALID_ARGUMENT, /aud: is required/));
      for (const field of ['identity', 'identityProvider'] as const) {
        await assert.rejects(
          exchange('nonsense', { [field]: 'my-org' }),
          refused(Code.INVALID_ARGUMENT, /identity(_provider)?: must be a uid/),
        );
      }
    });

    it('logs in as the requested identity if the token matches it', async () => {
      const { uid, token } = await newUser();
      const { uid: other } = await newUser();
      assert.equal((await verify((await exchange(token, { identity: uid })).token)).identity, uid);
      await assert.rejects(exchange(token, { identity: other }), refused(Code.PERMISSION_DENIED, /invalid "sub"/));
      await assert.rejects(
        exchange(token, { identity: newUid(ROOT) }),
        refused(Code.PERMISSION_DENIED, /invalid "iss"/),
      );
    });

    it('names the types of identities that cannot log in yet', async () => {
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
          refused(Code.PERMISSION_DENIED, new RegExp(`^Permission denied: ${kind} cannot log in on this server yet;`)),
        );
      }
    });

    it('restricts access tokens, and never extends them', async () => {
      const { uid, token } = await newUser();
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
      const accessToken = await verify(second.token);
      assert.deepEqual(accessToken.scopes, [team]);
      assert.deepEqual(accessToken.audiences, [ISSUER, 'b']);
      assert.deepEqual(accessToken.act, { iss: OTHER_ISSUER, sub: token, aud: `${ISSUER},other` });
      assert.equal(accessToken.authenticatedAt, now - 60_000, 'the time of the login stays the same');
      assert.deepEqual(
        await verify((await exchange(second.token, { aud: ['c'] })).token).then(({ scopes, capabilities }) => [
          scopes,
          capabilities,
        ]),
        [accessToken.scopes, accessToken.capabilities],
        'a request without scopes and capabilities keeps the restriction',
      );
      for (const request of [
        { scopes: [org] },
        { scopes: [other] },
        { scopes: [team, other] },
        { cap: ['roles.list'] },
      ]) {
        await assert.rejects(
          exchange(second.token, request),
          refused(Code.PERMISSION_DENIED, /your token is restricted to (scopes|capabilities) that do not include/),
        );
      }
      const { uid: another } = await newUser();
      await assert.rejects(exchange(first.token, { identity: another }), refused(Code.PERMISSION_DENIED, /"sub"/));
      await assert.rejects(exchange(first.token, { identityProvider: uid }), refused(Code.PERMISSION_DENIED, /"iss"/));
    });

    it('refuses access tokens for another audience', async () => {
      const { token } = await exchange((await newUser()).token, { aud: ['https://receiver.example.com'] });
      await assert.rejects(exchange(token), refused(Code.UNAUTHENTICATED, /invalid "aud".*another server/));
      const { token: shared } = await exchange((await newUser()).token, { aud: ['wharf.example.com', 'receiver'] });
      assert.ok(await exchange(shared), 'the host alone is an audience of this server too');
    });

    it('does not extend the lifetime of an access token by an exchange', async () => {
      const { token } = await newUser();
      const began = now;
      const first = await exchange(token);
      const { expires, session } = await verify(first.token);
      let accessToken = first.token;
      for (let hop = 0; hop < 3; hop++) {
        now += ACCESS_TOKEN_LIFETIME_MS / 4;
        const exchanged = await exchange(accessToken);
        assert.equal(exchanged.refreshToken, '');
        accessToken = exchanged.token;
        const verified = await verify(accessToken);
        assert.deepEqual([verified.expires, verified.session], [expires, session]);
      }
      now = expires;
      await assert.rejects(exchange(accessToken), refused(Code.UNAUTHENTICATED, /has expired/));

      const late = await issuer.accessTokens.issue({
        ...(await verify((await exchange(token)).token)),
        authenticatedAt: now - LOGIN_LIFETIME_MS,
      });
      await assert.rejects(exchange(late.token), refused(Code.UNAUTHENTICATED, /too long ago; log in again/));
      now = began;
    });

    it('exchanges a refresh token for an access token and the next refresh token', async () => {
      const { uid, token } = await newUser();
      const org = newUid(ROOT);
      const { refreshToken } = await exchange(token, { scopes: [org], cap: ['groups.list', 'roles.list'] });
      now += 10 * ACCESS_TOKEN_LIFETIME_MS;
      const pair = await refresh(refreshToken, { aud: ['x'], cap: ['groups.list'] });
      const accessToken = await verify(pair.token?.token ?? '');
      assert.equal(accessToken.identity, uid);
      assert.deepEqual([accessToken.audiences, accessToken.scopes], [['x'], [org]]);
      assert.equal(accessToken.act?.sub, token);
      assert.equal(timestampMs(pair.token?.expiry ?? assert.fail()), accessToken.expires);
      assert.deepEqual(Object.keys(pair.refreshToken ?? {}).sort(), ['$typeName', 'expiry', 'refreshToken', 'token']);
      assert.equal(pair.refreshToken?.refreshToken, '');
      assert.equal(
        timestampMs(pair.refreshToken?.expiry ?? assert.fail()),
        now - 10 * ACCESS_TOKEN_LIFETIME_MS + LOGIN_LIFETIME_MS,
      );

      const next = await refresh(pair.refreshToken?.token ?? '', { cap: ['roles.list'] });
      assert.ok(next.token, 'restricting one token does not restrict the login');
      await assert.rejects(refresh(refreshToken), refused(Code.UNAUTHENTICATED, /used before/));
      await assert.rejects(refresh(next.refreshToken?.token ?? ''), refused(Code.UNAUTHENTICATED, /log in again/));
    });

    it('does not use up the refresh token of a refused request', async () => {
      const { token } = await newUser();
      const org = newUid(ROOT);
      const { refreshToken } = await exchange(token, { scopes: [org] });
      await assert.rejects(refresh(refreshToken, { aud: [] }), refused(Code.INVALID_ARGUMENT, /aud/));
      await assert.rejects(
        refresh(refreshToken, { scopes: [newUid(ROOT)] }),
        refused(Code.PERMISSION_DENIED, /restricted to scopes that do not include/),
      );
      await assert.rejects(refresh(refreshToken, { cap: ['nonsense'] }), refused(Code.INVALID_ARGUMENT, /cap/));
      assert.ok(await refresh(refreshToken));
    });

    it('accepts one of many concurrent refreshes', async () => {
      const { refreshToken } = await exchange((await newUser()).token);
      const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => refresh(refreshToken)));
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.equal(outcome.reason.code, Code.UNAUTHENTICATED, outcome.reason);
      }
    });

    it('revokes tokens with the identity, also when it is created again with the same uid', async () => {
      const { uid, token } = await newUser();
      const { token: accessToken, refreshToken } = await exchange(token);
      const stored = (await find(store.reader, identities, uid)) ?? assert.fail();
      await deleteIdentity(uid);
      for (const attempt of [() => refresh(refreshToken), () => exchange(accessToken)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /was deleted/));
      }
      now += 1000;
      const again = { message: clone(IdentitySchema, stored.message), uid: stored.uid, parent: ROOT } as const;
      await store.write((tx) => insert(tx, identities, again, now));
      for (const attempt of [() => refresh(refreshToken), () => exchange(accessToken)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /was deleted/));
      }
      assert.ok(await exchange((await exchange(token)).token), 'a new login is valid');
    });

    it('revokes tokens when the identity accepts other credentials, not when it is renamed', async () => {
      const { uid, token } = await newUser();
      const { token: accessToken, refreshToken } = await exchange(token);
      await changeIdentity(uid, (identity) => {
        identity.name = 'renamed';
        identity.lastSeenTime = timestampFromMs(now);
      });
      assert.ok(await exchange(accessToken));
      const renewed = (await refresh(refreshToken)).refreshToken?.token ?? assert.fail();
      await changeIdentity(uid, ({ relationship }) => {
        if (relationship.case === 'claimMatch') relationship.value.sub = { case: 'subject', value: 'other' };
      });
      for (const attempt of [() => refresh(renewed), () => exchange(accessToken)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /accepts other credentials now; log in again/));
      }
    });

    it('revokes tokens when the static keys of the identity expire', async () => {
      const expirationTime = timestampFromMs(now + ACCESS_TOKEN_LIFETIME_MS / 2);
      const value = { issuer: OTHER_ISSUER, subject: 'machine', issuerKeys: '{"keys":[]}', expirationTime };
      const uid = await newIdentity(
        create(IdentitySchema, { relationship: { case: 'staticKeys', value } }).relationship,
      );
      identityByToken.set('machine', uid);
      const { token, refreshToken } = await exchange('machine');
      now += ACCESS_TOKEN_LIFETIME_MS / 2;
      for (const attempt of [() => refresh(refreshToken), () => exchange(token)]) {
        await assert.rejects(attempt(), refused(Code.UNAUTHENTICATED, /static keys .* have expired/));
      }
    });
  });
}
