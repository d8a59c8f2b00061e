import assert from 'node:assert/strict';
import { createCipheriv, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { type DataLocation, databases } from '../../test/support/databases.ts';
import { keyIdOf } from '../base/secretbox.ts';
import { newUid, ROOT } from '../base/uid.ts';
import { SubscriptionSchema } from '../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { IdentityProviderSchema } from '../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { secretContext } from '../domains/events/webhook-secret.ts';
import { clientSecretContext, identityProviders } from '../domains/iam/identity-providers/identity-providers.ts';
import { find } from '../resource/read.ts';
import { insert } from '../resource/write.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type MasterKeySource, type MasterKeys, openMasterKeys } from './master-key.ts';
import { rotateMasterKey } from './rotate-master-key.ts';
import { listKeys, rotateKeys } from './tokens/rotate-and-revoke-keys.ts';
import { createSigningKeys } from './tokens/signing-keys.ts';

const clock = () => Date.UTC(2026, 0, 1);

class Killed extends Error {}

for (const database of databases) {
  describe(`rotation of the master key on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    let otherStore: Store;
    const group = newUid(ROOT);
    /** More than a batch. */
    const subscriptionUids = Array.from({ length: 101 }, () => newUid(group)).sort();
    const providerUid = newUid(group);
    const keyFile = () => join(home.dataDir, 'master.key');
    const keyFiles = () => readdirSync(home.dataDir).filter((name) => name.startsWith('master.key'));

    beforeEach(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
      otherStore = await openStore(home);
    });
    afterEach(async () => {
      await Promise.all([store.close(), otherStore.close()]);
      await home.remove();
    });

    const addSubscription = (keys: MasterKeys, uid: (typeof subscriptionUids)[number], secret: string) =>
      store.write(async (tx) => {
        const [sealed, former] = [
          await keys.seal(tx, secret, secretContext(uid)),
          await keys.seal(tx, 'former', secretContext(uid)),
        ];
        const state = { secret: sealed, previous: { secret: former, until: 1 } };
        await insert(tx, subscriptions, { message: create(SubscriptionSchema), uid, parent: group, state }, clock());
      });

    /** Stores secrets of all kinds. */
    async function addSecrets(keys: MasterKeys): Promise<void> {
      await createSigningKeys({ store, masterKeys: keys, clock });
      await rotateKeys(store, keys, clock());
      for (const uid of subscriptionUids) await addSubscription(keys, uid, `secret of ${uid}`);
      await store.write(async (tx) => {
        const state = {
          clientSecret: await keys.seal(tx, 'client secret', clientSecretContext(providerUid)),
          other: 1,
        };
        const message = create(IdentityProviderSchema);
        await insert(tx, identityProviders, { message, uid: providerUid, parent: group, state }, clock());
      });
    }

    /** Asserts that a server with these keys can open all secrets, and returns the ids of their keys. */
    async function openAll(keys: MasterKeys): Promise<Set<string | undefined>> {
      const ids = new Set<string | undefined>();
      const open = async (sealed: string, context: string): Promise<string> => {
        ids.add(keyIdOf(sealed));
        return (await keys.open(sealed, context)).toString();
      };
      for (const uid of subscriptionUids) {
        const { state } = (await find(store.reader, subscriptions, uid)) ?? assert.fail();
        const { secret, previous } = state as { secret: string; previous: { secret: string; until: number } };
        assert.equal(await open(secret, secretContext(uid)), `secret of ${uid}`);
        assert.equal(await open(previous.secret, secretContext(uid)), 'former');
        assert.equal(previous.until, 1);
      }
      const provider = (await find(store.reader, identityProviders, providerUid))?.state as Record<string, unknown>;
      assert.equal(await open(String(provider.clientSecret), clientSecretContext(providerUid)), 'client secret');
      assert.equal(provider.other, 1);
      for (const { kid } of await listKeys(store.reader, clock())) {
        const row = await store.reader.get<{ private_key: string }>(
          'SELECT private_key FROM signing_key WHERE kid = $1',
          kid,
        );
        assert.match(await open(row?.private_key ?? '', `signing-key ${kid}`), /PRIVATE KEY/);
      }
      assert.ok((await createSigningKeys({ store, masterKeys: keys, clock }).then((signing) => signing.current())).kid);
      return ids;
    }

    it('seals all secrets again, while a server with the former key in memory runs', async () => {
      const running = await openMasterKeys(store, home);
      await addSecrets(running);
      const [former] = await openAll(running);
      const formerFile = readFileSync(keyFile(), 'utf8');
      const { keyId, resealed, formerKeyFiles } = await rotateMasterKey(otherStore, home);
      assert.equal(resealed, 2 * subscriptionUids.length + 1 + 2);
      assert.notEqual(keyId, former);
      for (const keys of [running, await openMasterKeys(store, home)]) {
        assert.deepEqual([...(await openAll(keys))], [keyId]);
        const sealed = await store.write((tx) => keys.seal(tx, 'x', 'y'));
        assert.equal(keyIdOf(sealed), keyId, 'a running server seals with the new key');
      }
      assert.deepEqual(keyFiles().sort(), ['master.key', `master.key.former-${former}`]);
      for (const name of keyFiles()) assert.equal(statSync(join(home.dataDir, name)).mode & 0o777, 0o600);
      assert.equal(readFileSync(formerKeyFiles[0] ?? '', 'utf8'), formerFile);
      assert.equal(readFileSync(keyFile(), 'utf8').trim().split('\n').length, 1);
      // The next rotation makes another key.
      assert.notEqual((await rotateMasterKey(otherStore, home)).keyId, keyId);
      await openAll(running);
    });

    it('loses nothing when it is killed at any step, and is completed by the next run', async () => {
      const running = await openMasterKeys(store, home);
      await addSecrets(running);
      let steps = 0;
      for (let killedAt = 1; ; killedAt++) {
        let step = 0;
        const result = await rotateMasterKey(otherStore, home, () => {
          step++;
          if (step === killedAt) throw new Killed();
        }).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          return undefined;
        });
        await openAll(running);
        await openAll(await openMasterKeys(store, home));
        if (result) {
          assert.deepEqual([...(await openAll(running))], [result.keyId]);
          steps = step;
          break;
        }
      }
      // The key file, the current key, signing keys, two batches of subscriptions, identity providers. The first run has
      // one more, because it creates the key.
      assert.ok(steps >= 5, String(steps));
    });

    it('seals again what servers seal at the same time with the former key', async () => {
      const running = await openMasterKeys(store, home);
      await addSecrets(running);
      const added = Array.from({ length: 20 }, () => newUid(group));
      const [{ keyId }] = await Promise.all([
        rotateMasterKey(otherStore, home),
        ...added.map((uid) => addSubscription(running, uid, `secret of ${uid}`)),
      ]);
      for (const uid of added) {
        const state = (await find(store.reader, subscriptions, uid))?.state as { secret: string };
        assert.equal(keyIdOf(state.secret), keyId);
      }
    });

    it('takes configured keys: the new one and the old one', async () => {
      const [old, next] = [randomBytes(32), randomBytes(32)];
      const { dataDir } = home;
      const before: MasterKeySource = { dataDir, configured: old };
      const during: MasterKeySource = { dataDir, configured: next, configuredOld: old };
      const after: MasterKeySource = { dataDir, configured: next };
      await addSecrets(await openMasterKeys(store, before));
      await assert.rejects(rotateMasterKey(otherStore, before), /first restart all servers with the new key/);
      await assert.rejects(openMasterKeys(store, after), /encrypted with another master key/);
      // Servers that were not restarted yet and servers with both keys run side by side.
      const restarted = await openMasterKeys(store, during);
      const sealed = await store.write((tx) => restarted.seal(tx, 'x', 'y'));
      assert.equal((await (await openMasterKeys(store, before)).open(sealed, 'y')).toString(), 'x');

      const { keyId, formerKeyFiles } = await rotateMasterKey(otherStore, during);
      assert.deepEqual([formerKeyFiles, keyFiles()], [[], []]);
      assert.deepEqual([...(await openAll(restarted))], [keyId]);
      assert.deepEqual([...(await openAll(await openMasterKeys(store, after)))], [keyId]);
      assert.equal((await rotateMasterKey(otherStore, during)).resealed, 0);
      await assert.rejects(openMasterKeys(store, before), /encrypted with another master key/);
    });

    it('seals secrets again that an earlier version has sealed without the id of the key', async () => {
      const running = await openMasterKeys(store, home);
      await addSecrets(running);
      const [uid = newUid(group)] = subscriptionUids;
      const key = Buffer.from(readFileSync(keyFile(), 'utf8'), 'base64');
      const sealedV1 = (text: string): string => {
        const nonce = randomBytes(12);
        const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(secretContext(uid)));
        const content = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
        return `v1:${content.toString('base64')}`;
      };
      const state = { secret: sealedV1(`secret of ${uid}`), previous: { secret: sealedV1('former'), until: 1 } };
      await store.write((tx) => tx.run('UPDATE resource SET state = $2 WHERE uid = $1', uid, JSON.stringify(state)));
      await openAll(running);
      const { keyId } = await rotateMasterKey(otherStore, home);
      assert.deepEqual([...(await openAll(running))], [keyId]);
    });
  });
}
