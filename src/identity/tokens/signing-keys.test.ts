import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JWK, jwtVerify, SignJWT } from 'jose';
import { type DataLocation, databases } from '../../../test/support/databases.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { fixedMasterKeys } from '../master-key.testing.ts';
import { ACCESS_TOKEN_LIFETIME_MS, KEY_OVERLAP_MS } from './lifetimes.ts';
import { ensureKey, listKeys, revokeKey, rotateKeys } from './rotate-and-revoke-keys.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';

const START = Date.UTC(2026, 0, 1);
const masterKeys = fixedMasterKeys();

for (const database of databases) {
  describe(`signing keys of two servers on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    let otherStore: Store;
    let keys: SigningKeys;
    let otherKeys: SigningKeys;
    let now = START;
    const clock = () => now;
    const states = async () => (await listKeys(store.reader, now)).map(({ state }) => state);
    const published = async (server: SigningKeys) => (await server.publicKeys()).keys.map(({ kid }) => kid);

    before(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
      otherStore = await openStore(home);
      [keys, otherKeys] = await Promise.all([
        createSigningKeys({ store, masterKeys, clock }),
        createSigningKeys({ store: otherStore, masterKeys, clock }),
      ]);
    });
    after(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    it('begin with one key, also when both servers start at the same time', async () => {
      assert.deepEqual(await states(), ['current']);
      assert.equal((await keys.current()).kid, (await otherKeys.current()).kid);
      await ensureKey(store, masterKeys, now);
      assert.deepEqual(await states(), ['current']);
    });

    it('sign with RS256 and 2048 bits, and the published key verifies it', async () => {
      const { kid, privateKey } = await keys.current();
      const token = await new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey);
      const [jwk] = (await otherKeys.publicKeys()).keys;
      assert.deepEqual(Object.keys(jwk ?? {}).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use']);
      assert.equal(Buffer.from(jwk?.n ?? '', 'base64url').length * 8, 2048);
      await jwtVerify(token, jwk as JWK);
    });

    it('have a sealed private key in the database', async () => {
      const row = await store.reader.get<{ private_key: string; public_jwk: string }>(
        'SELECT private_key, public_jwk FROM signing_key',
      );
      assert.match(row?.private_key ?? '', /^v2:/);
      assert.doesNotMatch(JSON.stringify(row), /PRIVATE|"d":/);
      const withOtherMasterKey = await createSigningKeys({ store, masterKeys: fixedMasterKeys(), clock });
      await assert.rejects(withOtherMasterKey.current(), { name: 'UnsealError' });
    });

    it('rotate: published at once, used after the overlap, deleted when the last token has expired', async () => {
      const { kid: old } = await keys.current();
      const next = await rotateKeys(store, masterKeys, now);
      assert.deepEqual(await states(), ['next', 'current']);
      assert.deepEqual(await published(otherKeys), [next, old]);
      now += KEY_OVERLAP_MS - 1;
      for (const server of [keys, otherKeys]) assert.equal((await server.current()).kid, old);
      now += 1;
      for (const server of [keys, otherKeys]) assert.equal((await server.current()).kid, next);
      assert.deepEqual(await states(), ['current', 'retired']);
      now += ACCESS_TOKEN_LIFETIME_MS + KEY_OVERLAP_MS - 1;
      assert.ok(await otherKeys.findPublicKey(old));
      now += 1;
      assert.equal(await otherKeys.findPublicKey(old), undefined);
      assert.deepEqual(await published(keys), [next]);
      await rotateKeys(store, masterKeys, now);
      assert.equal((await store.reader.all('SELECT kid FROM signing_key')).length, 2, 'expired keys are deleted');
    });

    it('rotate at once while a next key waits for its activation', async () => {
      const { kid: old } = await keys.current();
      const second = await rotateKeys(otherStore, masterKeys, now + 1000);
      now += KEY_OVERLAP_MS + 1000;
      assert.equal((await keys.current()).kid, second);
      const waiting = await rotateKeys(store, masterKeys, now);
      const urgent = await rotateKeys(otherStore, masterKeys, now, now);
      for (const server of [keys, otherKeys]) assert.equal((await server.current()).kid, urgent);
      now += 2 * KEY_OVERLAP_MS;
      assert.equal((await keys.current()).kid, urgent, 'the key that waited is never used');
      for (const kid of [old, second, waiting]) assert.ok(await keys.findPublicKey(kid));
    });

    it('revoke the current key: no server accepts it from then on, and a new one signs', async () => {
      const { kid } = await otherKeys.current();
      assert.ok(await otherKeys.findPublicKey(kid));
      assert.equal(await revokeKey(store, masterKeys, kid, now), true);
      assert.equal(await otherKeys.findPublicKey(kid), undefined);
      assert.ok(!(await published(otherKeys)).includes(kid));
      const replacement = await otherKeys.current();
      assert.notEqual(replacement.kid, kid);
      assert.equal((await keys.current()).kid, replacement.kid);
    });

    it('revoke a next key: the current one signs until another has been published long enough', async () => {
      const { kid: current } = await keys.current();
      const waiting = await rotateKeys(store, masterKeys, now);
      now += KEY_OVERLAP_MS / 2;
      assert.equal(await revokeKey(store, masterKeys, waiting, now), true);
      now += KEY_OVERLAP_MS - 1;
      assert.equal((await keys.current()).kid, current);
      now += 1;
      const { kid: successor } = await keys.current();
      assert.ok(successor !== current && successor !== waiting);
    });

    it('revoke a retired key without a replacement, and no unknown key', async () => {
      const retired =
        (await listKeys(store.reader, now)).find(({ state }) => state === 'retired')?.kid ?? assert.fail();
      const { kid } = await keys.current();
      assert.equal(await revokeKey(store, masterKeys, retired, now), true);
      assert.equal(await revokeKey(store, masterKeys, retired, now), false);
      assert.equal(await keys.findPublicKey(retired), undefined);
      assert.equal((await keys.current()).kid, kid);
    });

    it('include a key to sign with on a server whose clock is behind', async () => {
      const { kid } = await keys.current();
      await revokeKey(store, masterKeys, kid, now + 30_000);
      assert.notEqual((await otherKeys.current()).kid, kid);
    });

    it('have one current key after concurrent rotations', async () => {
      const rotated = await Promise.all([
        rotateKeys(store, masterKeys, now, now),
        rotateKeys(otherStore, masterKeys, now, now),
      ]);
      const current = await Promise.all([keys.current(), otherKeys.current()]);
      assert.equal(current[0].kid, current[1].kid);
      assert.ok(rotated.includes(current[0].kid));
    });

    it('replace themselves at their age, once for all servers, with the overlap of a rotation', async () => {
      const DAY = 24 * 60 * 60 * 1000;
      const maxAgeMs = 90 * DAY;
      const [aging, otherAging] = await Promise.all([
        createSigningKeys({ store, masterKeys, clock, maxAgeMs }),
        createSigningKeys({ store: otherStore, masterKeys, clock, maxAgeMs }),
      ]);
      await rotateKeys(store, masterKeys, now, now);
      const { kid: old } = await aging.current();
      now += maxAgeMs - 1;
      assert.equal((await aging.current()).kid, old);
      assert.deepEqual(await states(), ['current']);

      now += 1;
      // The key still signs when its successor is published, because verifiers have cached the published keys.
      const signing = await Promise.all([aging, otherAging, aging, otherAging].map((server) => server.current()));
      assert.ok(signing.every(({ kid }) => kid === old));
      assert.deepEqual(await states(), ['next', 'current']);
      now += KEY_OVERLAP_MS;
      const { kid: successor } = await otherAging.current();
      assert.notEqual(successor, old);
      assert.equal((await aging.current()).kid, successor);
      assert.ok(await aging.findPublicKey(old), 'its tokens are still valid');
      now += ACCESS_TOKEN_LIFETIME_MS + KEY_OVERLAP_MS;
      assert.equal(await aging.findPublicKey(old), undefined);

      // By default, and after a rotation by hand, nothing happens before that age.
      now += 2 * maxAgeMs;
      assert.equal((await keys.current()).kid, successor);
      assert.deepEqual(await states(), ['current']);
    });

    it('sign even if their replacement fails', async () => {
      const warnings: string[] = [];
      const log = { info() {}, warn: (_fields: object, message: string) => void warnings.push(message) };
      const failing = { ...masterKeys, seal: () => Promise.reject(new Error('no key')) };
      const aging = await createSigningKeys({ store, masterKeys: failing, clock, maxAgeMs: 1, log });
      now += 1000;
      assert.ok(await aging.current());
      assert.ok(await aging.current());
      assert.deepEqual(warnings, ['cannot rotate the signing key']);
    });
  });
}
