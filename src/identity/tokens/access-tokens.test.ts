import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { after, before, describe, it, test } from 'node:test';
import { decodeJwt, decodeProtectedHeader, exportSPKI, type JWTPayload, SignJWT } from 'jose';
import { databases, type Home } from '../../../test/support/databases.ts';
import { Code } from '../../base/errors.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { encodeSet, setOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { bearerToken, createTokens, type TokenContent, type Tokens } from './access-tokens.ts';
import { revokeKey, rotateKeys } from './key-rotation.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';

const START = Date.UTC(2026, 0, 1) + 250;
const HOUR = 3_600_000;
const ISSUER = 'https://wharf.example.com';
const masterKey = randomBytes(32);
const unauthenticated = { name: 'ApiError', code: Code.UNAUTHENTICATED };

const whole: TokenContent = {
  identity: newUid(ROOT),
  audiences: ['https://wharf.example.com'],
  authenticated: START - 250,
  proof: 'a proof',
};
const narrow: TokenContent = {
  ...whole,
  audiences: ['a', 'b'],
  scopes: [newUid(newUid(ROOT)), newUid(ROOT)],
  capabilities: setOf([Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST]),
  act: { iss: 'https://issuer.example.com', sub: 'alice', aud: 'one,two' },
  email: { address: 'alice@example.com', verified: true },
  provider: { uid: newUid(newUid(ROOT)), groups: ['admins'] },
};

for (const database of databases) {
  describe(`tokens of two servers on ${database.name}`, () => {
    let home: Home;
    let store: Store;
    let otherStore: Store;
    let keys: SigningKeys;
    let tokens: Tokens;
    let otherTokens: Tokens;
    let now = START;
    const clock = () => now;

    before(async () => {
      home = await database.home();
      store = await openStore(home);
      otherStore = await openStore(home);
      keys = await createSigningKeys({ store, masterKey, clock });
      const otherKeys = await createSigningKeys({ store: otherStore, masterKey, clock });
      tokens = createTokens({ signingKeys: keys, clock, issuer: () => ISSUER });
      otherTokens = createTokens({ signingKeys: otherKeys, clock, issuer: () => ISSUER });
    });
    after(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    /** Signed with our own key, whatever it says. */
    const sign = async (claims: JWTPayload, header: object = {}): Promise<string> => {
      const { kid, privateKey } = await keys.current();
      return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid, ...header }).sign(privateKey);
    };
    const claims = (changes: JWTPayload = {}): JWTPayload => {
      const seconds = Math.floor(now / 1000);
      return {
        iss: ISSUER,
        sub: whole.identity,
        aud: ['a'],
        iat: seconds,
        nbf: seconds,
        exp: seconds + 60,
        ...changes,
      };
    };

    it('are accepted by each other, with all that they say', async () => {
      for (const content of [whole, narrow]) {
        const { token, expires } = await tokens.mint(content);
        const { issuedAt, expires: found, ...said } = (await otherTokens.verify(token)) ?? assert.fail();
        assert.deepEqual(
          { ...said },
          {
            scopes: undefined,
            capabilities: undefined,
            act: undefined,
            email: undefined,
            provider: undefined,
            ...content,
          },
        );
        assert.equal(found, expires);
        assert.equal(issuedAt, Math.floor(now / 1000) * 1000);
      }
    });

    it('look as existing clients expect, and live for an hour at least', async () => {
      const { token, expires } = await tokens.mint(narrow);
      assert.ok(expires >= now + HOUR && expires < now + HOUR + 1000);
      assert.match(token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
      const { kid } = await keys.current();
      assert.deepEqual(decodeProtectedHeader(token), { alg: 'RS256', typ: 'JWT', kid });
      const { jti, ...rest } = decodeJwt(token);
      const seconds = Math.floor(now / 1000);
      assert.deepEqual(rest, {
        iss: ISSUER,
        sub: narrow.identity,
        aud: ['a', 'b'],
        iat: seconds,
        nbf: seconds,
        exp: expires / 1000,
        auth_time: seconds,
        proof: 'a proof',
        act: narrow.act,
        idp: narrow.provider,
        cap: encodeSet(narrow.capabilities ?? assert.fail()),
        scopes: narrow.scopes,
        email: 'alice@example.com',
        email_verified: true,
      });
      assert.notEqual(jti, decodeJwt((await tokens.mint(narrow)).token).jti);
    });

    it('carry nothing about scopes, capabilities and e-mail when there is nothing to say', async () => {
      const found = Object.keys(decodeJwt((await tokens.mint(whole)).token));
      assert.deepEqual(found.sort(), ['aud', 'auth_time', 'exp', 'iat', 'iss', 'jti', 'nbf', 'proof', 'sub']);
    });

    it('of others are not ours', async () => {
      const foreign = await sign(claims({ iss: 'https://issuer.example.com' }));
      for (const token of [foreign, '', 'x', 'a.b.c', 'e30.e30.', `${foreign}.x`, 'a'.repeat(20_000)]) {
        assert.equal(await tokens.verify(token), undefined, token.slice(0, 50));
      }
    });

    it('end on time, also when they were seen before', async () => {
      const { token, expires } = await tokens.mint(whole);
      const began = now;
      now = expires - 1;
      assert.ok(await tokens.verify(token));
      now = expires;
      for (const server of [tokens, otherTokens]) {
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /expired/ });
      }
      now = began;
    });

    it('may come from a server whose clock is a minute ahead, and no more', async () => {
      const at = (seconds: number) => Math.floor(now / 1000) + seconds;
      assert.ok(await tokens.verify(await sign(claims({ iat: at(60), nbf: at(60), exp: at(600) }))));
      for (const changes of [{ iat: at(62) }, { nbf: at(62) }]) {
        const token = await sign(claims({ ...changes, exp: at(600) }));
        await assert.rejects(tokens.verify(token), { ...unauthenticated, message: /invalid "(iat|nbf)" in the token/ });
      }
    });

    it('must have every claim that matters', async () => {
      for (const name of ['sub', 'aud', 'exp', 'iat', 'nbf']) {
        const { [name]: _missing, ...rest } = claims();
        await assert.rejects(tokens.verify(await sign(rest)), { ...unauthenticated, message: new RegExp(`"${name}"`) });
      }
      for (const cap of ['', 'nonsense', 7]) {
        await assert.rejects(tokens.verify(await sign(claims({ cap }))), { ...unauthenticated, message: /"cap"/ });
      }
    });

    it('must be signed by us: not at all, by another key or symmetrically will not do', async () => {
      const { token } = await tokens.mint(whole);
      const [header = '', payload = '', signature = ''] = token.split('.');
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const { kid } = await keys.current();
      const publicPem = await exportSPKI((await keys.published(kid)) ?? assert.fail());
      const symmetric = `${encode({ alg: 'HS256', typ: 'JWT', kid })}.${payload}`;
      const forged = [
        `${encode({ alg: 'none', typ: 'JWT', kid })}.${payload}.`,
        `${symmetric}.${createHmac('sha256', publicPem).update(symmetric).digest('base64url')}`,
        `${header}.${encode({ ...decodeJwt(token), sub: newUid(ROOT) })}.${signature}`,
        `${header}.${payload}.${randomBytes(256).toString('base64url')}`,
        `${header}.${payload}.`,
        `${encode({ alg: 'RS256', typ: 'JWT' })}.${payload}.${signature}`,
        `${encode({ alg: 'RS256', typ: 'JWT', kid: '0'.repeat(32) })}.${payload}.${signature}`,
        `${encode({ alg: 'RS256', typ: 'JWT', kid: "' OR 1=1 \0" })}.${payload}.${signature}`,
        await sign(claims(), { typ: 'at+jwt' }),
        await sign(claims(), { typ: undefined }),
      ];
      for (const wrong of forged) await assert.rejects(tokens.verify(wrong), unauthenticated, wrong);
    });

    it('signed with a key that another server brought in are accepted at once', async () => {
      await tokens.verify((await otherTokens.mint(whole)).token);
      const kid = await rotateKeys(otherStore, masterKey, now, now);
      const { token } = await otherTokens.mint(whole);
      assert.equal(decodeProtectedHeader(token).kid, kid);
      assert.ok(await tokens.verify(token));
    });

    it('of a revoked key are refused by the next request on every server, also when seen before', async () => {
      const { token } = await tokens.mint(whole);
      for (const server of [tokens, otherTokens]) assert.ok(await server.verify(token));
      const { kid = '' } = decodeProtectedHeader(token);
      assert.ok(await revokeKey(otherStore, masterKey, kid, now));
      for (const server of [tokens, otherTokens]) {
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /was revoked/ });
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /was revoked/ });
      }
      assert.ok(await otherTokens.verify((await tokens.mint(whole)).token), 'what is signed from now on is good');
    });
  });
}

test('an authorization value holds its token with or without Bearer', () => {
  for (const value of ['Bearer abc', 'bearer  abc ', 'abc', ' abc']) assert.equal(bearerToken(value), 'abc');
  for (const value of [undefined, '', 'Bearer ', 'Bearer', '  ']) assert.equal(bearerToken(value), '');
});
