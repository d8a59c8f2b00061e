import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { after, before, describe, it, test } from 'node:test';
import { decodeJwt, decodeProtectedHeader, exportSPKI, type JWTPayload, SignJWT } from 'jose';
import { type DataLocation, databases } from '../../../test/support/databases.ts';
import { Code } from '../../base/errors.ts';
import { newUid, ROOT, suffixOf, type Uid } from '../../base/uid.ts';
import { capabilitySetOf, encodeCapabilitySet } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { fixedMasterKeys } from '../master-key.testing.ts';
import { type AccessTokenClaims, type AccessTokens, bearerToken, createAccessTokens } from './access-tokens.ts';
import { revokeKey, rotateKeys } from './rotate-and-revoke-keys.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';

const START = Date.UTC(2026, 0, 1) + 250;
const HOUR = 3_600_000;
const ISSUER = 'https://wharf.example.com';
const masterKeys = fixedMasterKeys();
const unauthenticated = { name: 'ApiError', code: Code.UNAUTHENTICATED };

const unrestricted: AccessTokenClaims = {
  identity: newUid(ROOT),
  audiences: ['https://wharf.example.com'],
  authenticatedAt: START - 250,
  credentialFingerprint: 'fingerprint',
};
const restricted: AccessTokenClaims = {
  ...unrestricted,
  audiences: ['a', 'b'],
  scopes: [newUid(newUid(ROOT)), newUid(ROOT)],
  capabilities: capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST]),
  act: { iss: 'https://issuer.example.com', sub: 'alice', aud: 'one,two' },
  email: { address: 'alice@example.com', verified: true },
  provider: { uid: newUid(newUid(ROOT)), groups: ['admins'] },
  session: newUid(unrestricted.identity as Uid),
};

for (const database of databases) {
  describe(`access tokens of two servers on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    let otherStore: Store;
    let keys: SigningKeys;
    let accessTokens: AccessTokens;
    let otherAccessTokens: AccessTokens;
    let now = START;
    const clock = () => now;

    before(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
      otherStore = await openStore(home);
      keys = await createSigningKeys({ store, masterKeys, clock });
      const otherKeys = await createSigningKeys({ store: otherStore, masterKeys, clock });
      accessTokens = createAccessTokens({ signingKeys: keys, clock, issuer: ISSUER });
      otherAccessTokens = createAccessTokens({ signingKeys: otherKeys, clock, issuer: ISSUER });
    });
    after(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    /** Signs any claims with the key of the server. */
    const sign = async (claims: JWTPayload, header: object = {}): Promise<string> => {
      const { kid, privateKey } = await keys.current();
      return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid, ...header }).sign(privateKey);
    };
    const claims = (changes: JWTPayload = {}): JWTPayload => {
      const seconds = Math.floor(now / 1000);
      return {
        iss: ISSUER,
        sub: unrestricted.identity,
        aud: ['a'],
        iat: seconds,
        nbf: seconds,
        exp: seconds + 60,
        ...changes,
      };
    };

    it('of one server are accepted by the other, with all claims', async () => {
      for (const content of [unrestricted, restricted]) {
        const { token, expires } = await accessTokens.issue(content);
        const { issuedAt, expires: found, ...rest } = (await otherAccessTokens.verify(token)) ?? assert.fail();
        assert.deepEqual(
          { ...rest },
          {
            scopes: undefined,
            capabilities: undefined,
            act: undefined,
            email: undefined,
            provider: undefined,
            session: undefined,
            ...content,
          },
        );
        assert.equal(found, expires);
        assert.equal(issuedAt, Math.floor(now / 1000) * 1000);
      }
    });

    it('have the form that existing clients expect, and a lifetime of at least an hour', async () => {
      const { token, expires } = await accessTokens.issue(restricted);
      assert.ok(expires >= now + HOUR && expires < now + HOUR + 1000);
      assert.match(token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
      const { kid } = await keys.current();
      assert.deepEqual(decodeProtectedHeader(token), { alg: 'RS256', typ: 'JWT', kid });
      const { jti, ...rest } = decodeJwt(token);
      const seconds = Math.floor(now / 1000);
      assert.deepEqual(rest, {
        iss: ISSUER,
        sub: restricted.identity,
        aud: ['a', 'b'],
        iat: seconds,
        nbf: seconds,
        exp: expires / 1000,
        auth_time: seconds,
        proof: 'fingerprint',
        act: restricted.act,
        sid: suffixOf(restricted.session ?? ''),
        idp: restricted.provider,
        cap: encodeCapabilitySet(restricted.capabilities ?? assert.fail()),
        scopes: restricted.scopes,
        email: 'alice@example.com',
        email_verified: true,
      });
      assert.notEqual(jti, decodeJwt((await accessTokens.issue(restricted)).token).jti);
    });

    it('omit claims for absent scopes, capabilities and e-mail', async () => {
      const found = Object.keys(decodeJwt((await accessTokens.issue(unrestricted)).token));
      assert.deepEqual(found.sort(), ['aud', 'auth_time', 'exp', 'iat', 'iss', 'jti', 'nbf', 'proof', 'sub']);
    });

    it('of other issuers give undefined', async () => {
      const thirdParty = await sign(claims({ iss: 'https://issuer.example.com' }));
      for (const token of [thirdParty, '', 'x', 'a.b.c', 'e30.e30.', `${thirdParty}.x`, 'a'.repeat(20_000)]) {
        assert.equal(await accessTokens.verify(token), undefined, token.slice(0, 50));
      }
    });

    it('expire on time, also when they are cached', async () => {
      const { token, expires } = await accessTokens.issue(unrestricted);
      const began = now;
      now = expires - 1;
      assert.ok(await accessTokens.verify(token));
      now = expires;
      for (const server of [accessTokens, otherAccessTokens]) {
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /expired/ });
      }
      now = began;
    });

    it('are accepted from a server whose clock is at most a minute ahead', async () => {
      const at = (seconds: number) => Math.floor(now / 1000) + seconds;
      assert.ok(await accessTokens.verify(await sign(claims({ iat: at(60), nbf: at(60), exp: at(600) }))));
      for (const changes of [{ iat: at(62) }, { nbf: at(62) }]) {
        const token = await sign(claims({ ...changes, exp: at(600) }));
        await assert.rejects(accessTokens.verify(token), {
          ...unauthenticated,
          message: /invalid "(iat|nbf)" in the token/,
        });
      }
    });

    it('must have all required claims', async () => {
      for (const name of ['sub', 'aud', 'exp', 'iat', 'nbf']) {
        const { [name]: _missing, ...rest } = claims();
        await assert.rejects(accessTokens.verify(await sign(rest)), {
          ...unauthenticated,
          message: new RegExp(`"${name}"`),
        });
      }
      for (const cap of ['', 'nonsense', 7]) {
        await assert.rejects(accessTokens.verify(await sign(claims({ cap }))), {
          ...unauthenticated,
          message: /"cap"/,
        });
      }
    });

    it('must be signed by this server: unsigned, symmetric and forged ones are refused', async () => {
      const { token } = await accessTokens.issue(unrestricted);
      const [header = '', payload = '', signature = ''] = token.split('.');
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const { kid } = await keys.current();
      const publicPem = await exportSPKI((await keys.findPublicKey(kid)) ?? assert.fail());
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
      for (const token of forged) await assert.rejects(accessTokens.verify(token), unauthenticated, token);
    });

    it('signed with a new key of another server are accepted at once', async () => {
      await accessTokens.verify((await otherAccessTokens.issue(unrestricted)).token);
      const kid = await rotateKeys(otherStore, masterKeys, now, now);
      const { token } = await otherAccessTokens.issue(unrestricted);
      assert.equal(decodeProtectedHeader(token).kid, kid);
      assert.ok(await accessTokens.verify(token));
    });

    it('of a revoked key are refused by the next request on every server, also when they are cached', async () => {
      const { token } = await accessTokens.issue(unrestricted);
      for (const server of [accessTokens, otherAccessTokens]) assert.ok(await server.verify(token));
      const { kid = '' } = decodeProtectedHeader(token);
      assert.ok(await revokeKey(otherStore, masterKeys, kid, now));
      for (const server of [accessTokens, otherAccessTokens]) {
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /was revoked/ });
        await assert.rejects(server.verify(token), { ...unauthenticated, message: /was revoked/ });
      }
      assert.ok(
        await otherAccessTokens.verify((await accessTokens.issue(unrestricted)).token),
        'tokens that are signed from now on are valid',
      );
    });
  });
}

test('the token is read from an authorization value with or without Bearer', () => {
  for (const value of ['Bearer abc', 'bearer  abc ', 'abc', ' abc']) assert.equal(bearerToken(value), 'abc');
  for (const value of [undefined, '', 'Bearer ', 'Bearer', '  ']) assert.equal(bearerToken(value), '');
});
