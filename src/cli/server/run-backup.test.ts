import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadSettings } from '../../load-settings.ts';
import { backupEnvironment } from './run-backup.ts';

test('a scheduled backup uses the database of the server, whichever settings file is found', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-run-backup-'));
  const before = process.cwd();
  process.chdir(directory);
  t.after(() => {
    process.chdir(before);
    rmSync(directory, { recursive: true });
  });
  writeFileSync('wharf.yaml', 'database_url: postgres://db.example.com/other\n', { mode: 0o600 });
  writeFileSync('named.yaml', 'data: named\n', { mode: 0o600 });

  const ofServer = await loadSettings({ config: 'named.yaml' }, {});
  assert.equal(ofServer.config.databaseUrl, undefined);
  const ofBackup = await loadSettings({}, backupEnvironment(ofServer, {}));
  assert.equal(ofBackup.config.databaseUrl, undefined);
  assert.equal(ofBackup.config.data, join(directory, 'named'));
  assert.equal(ofBackup.file, ofServer.file);

  const withoutFile = { config: ofServer.config, file: undefined };
  assert.equal((await loadSettings({}, backupEnvironment(withoutFile, {}))).file, undefined);
});
