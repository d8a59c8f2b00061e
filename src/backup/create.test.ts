import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findDatabase } from '../../test/support/databases.ts';
import { openFilesystemBlobs } from '../blobs/filesystem.ts';
import { holdBlobs } from '../domains/registry/storage/blob-holds.ts';
import { openStore } from '../store/open.ts';
import { createBackup } from './create.ts';
import { openDirectoryTarget } from './directory-target.ts';

test('removes what a killed backup has staged, but not what one to another target is staging', async (t) => {
  const location = await findDatabase().createDataLocation();
  const store = await openStore(location);
  const root = mkdtempSync(join(tmpdir(), 'wharf-create-'));
  t.after(async () => {
    await store.close();
    await location.remove();
    rmSync(root, { recursive: true });
  });
  const { dataDir } = location;
  const staged = (id: string): string => join(dataDir, 'backup-staging', id, 'wharfinger.db');
  for (const id of ['killed', 'running']) {
    mkdirSync(join(dataDir, 'backup-staging', id), { recursive: true });
    writeFileSync(staged(id), '');
  }
  await holdBlobs(store, 'killed', Date.now() - 1);
  await holdBlobs(store, 'running', Date.now() + 60_000);
  await createBackup({
    // As S3 does, it has no place for temporary files.
    target: { ...openDirectoryTarget(root, 'new'), stagingDirectory: () => undefined },
    ...{
      id: 'new',
      dataDir,
      databaseUrl: undefined,
      store,
      blobs: await openFilesystemBlobs(join(dataDir, 'registry')),
    },
    ...{ masterKey: undefined, withMasterKey: false, full: false, clock: Date.now },
    progress: { say() {}, update() {} },
  });
  assert.ok(!existsSync(staged('killed')));
  assert.ok(existsSync(staged('running')));
  assert.ok(!existsSync(staged('new')));
});
