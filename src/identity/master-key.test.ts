import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type DataLocation, databases } from '../../test/support/databases.ts';
import { open, sealingKey } from '../base/secretbox.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { openMasterKeys } from './master-key.ts';

for (const database of databases) {
  describe(`master key on ${database.name}`, () => {
    let home: DataLocation;
    let store: Store;
    const keyFile = () => join(home.dataDir, 'master.key');
    const otherDirectory = () => mkdtempSync(join(tmpdir(), 'wharf-data-'));

    beforeEach(async () => {
      home = await database.createDataLocation();
      store = await openStore(home);
    });
    afterEach(async () => {
      await store.close();
      await home.remove();
    });

    it('is created by the first start, readable for its owner only, and used by the next', async () => {
      await openMasterKeys(store, home);
      const key = readFileSync(keyFile(), 'utf8');
      assert.equal(Buffer.from(key, 'base64').length, 32);
      assert.equal(statSync(keyFile()).mode & 0o777, 0o600);
      assert.deepEqual(
        readdirSync(home.dataDir).filter((name) => name.startsWith('master.key')),
        ['master.key'],
      );
      await openMasterKeys(store, home);
      assert.equal(readFileSync(keyFile(), 'utf8'), key);
    });

    it('is the configured one, and then no file is created', async () => {
      const configured = randomBytes(32);
      const keys = await openMasterKeys(store, { dataDir: home.dataDir, configured });
      const sealed = await store.write((tx) => keys.seal(tx, 'secret', 'a'));
      assert.equal(open(sealingKey(configured), sealed, 'a').toString(), 'secret');
      await openMasterKeys(store, { dataDir: home.dataDir, configured });
      assert.throws(() => statSync(keyFile()), { code: 'ENOENT' });
    });

    it('is the same for several servers that start at the same time in one directory', async () => {
      const servers = await Promise.all(Array.from({ length: 5 }, () => openMasterKeys(store, home)));
      for (const server of servers) {
        const sealed = await store.write((tx) => server.seal(tx, 'secret', 'a'));
        for (const other of servers) assert.equal((await other.open(sealed, 'a')).toString(), 'secret');
      }
    });

    const wrongKey = {
      message:
        /^the secrets in the database are encrypted with another master key \(key id \w{16}\): set WHARF_MASTER_KEY .*'wharf keys reset-master'/,
    };

    it('prevents the start when the database is encrypted with another key', async () => {
      await openMasterKeys(store, home);
      await assert.rejects(openMasterKeys(store, { dataDir: home.dataDir, configured: randomBytes(32) }), wrongKey);
      writeFileSync(keyFile(), randomBytes(32).toString('base64'));
      await assert.rejects(openMasterKeys(store, home), wrongKey);
    });

    it('is not created again when the file is missing, because another server may have it', async () => {
      await openMasterKeys(store, home);
      const dataDir = otherDirectory();
      await assert.rejects(openMasterKeys(store, { dataDir }), {
        message:
          /^the master key is missing: there is no .*master\.key and WHARF_MASTER_KEY is not set, .* \(key id \w{16}\)\. Restore it from a backup\. If it is lost, 'wharf keys reset-master'/,
      });
      assert.deepEqual(readdirSync(dataDir), []);
      // The advice of the error message works.
      writeFileSync(join(dataDir, 'master.key'), readFileSync(keyFile()));
      await openMasterKeys(store, { dataDir });
      rmSync(dataDir, { recursive: true });
    });

    it('prevents the start when its file is damaged', async () => {
      for (const text of ['', 'AAAA', `${randomBytes(33).toString('base64')}\n`]) {
        writeFileSync(keyFile(), text);
        await assert.rejects(openMasterKeys(store, home), {
          message: /master\.key is damaged: .* 32 bytes in base64; restore it from a backup/,
        });
      }
    });
  });
}
