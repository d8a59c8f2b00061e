import assert from 'node:assert/strict';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database, DataLocation } from '../support/databases.ts';
import { spawnServer } from '../support/process.ts';
import { createBackup, listBackups, startWharf, wharf } from './commands.ts';
import { requireAcknowledged, requireConsistent, type Workload } from './workload.ts';

/** Starts a command and kills it as soon as `isReached`. Returns whether the command was still running then. */
async function killWhen(
  args: readonly string[],
  location: Pick<DataLocation, 'dataDir' | 'databaseUrl'>,
  isReached: () => boolean,
): Promise<boolean> {
  const { child, done } = startWharf(args, location);
  let isEnded = false;
  void done.then(() => {
    isEnded = true;
  });
  while (!isEnded && !isReached()) await delay(1);
  child.kill('SIGKILL');
  await done;
  return child.signalCode === 'SIGKILL';
}

const ATTEMPTS = 10;

/** Kills `wharf backup create` at several stages. The next one cleans up and is complete. */
export async function killCreate(location: DataLocation): Promise<string[]> {
  const stages: Readonly<Record<string, (target: string) => boolean>> = {
    announced: (target) => globSync('in-progress/*.json', { cwd: target }).length > 0,
    'database written': (target) => globSync('backups/*/*.zst', { cwd: target }).length > 0,
    'blobs copied': (target) => globSync('blobs/sha256/*/*', { cwd: target }).length > 3,
  };
  const reached: string[] = [];
  for (const [stage, isReached] of Object.entries(stages)) {
    const target = mkdtempSync(join(tmpdir(), 'wharf-backup-killed-'));
    try {
      let isKilled = false;
      for (let attempt = 0; attempt < ATTEMPTS && !isKilled; attempt++) {
        rmSync(target, { recursive: true });
        isKilled = await killWhen(['backup', 'create', target], location, () => isReached(target));
      }
      assert.ok(isKilled, `the backup was never killed at the stage: ${stage}`);
      if (existsSync(join(target, 'wharf-backups.json'))) assert.deepEqual(await listBackups(target), [], stage);
      const { id } = await createBackup(target, location);
      assert.deepEqual(readdirSync(join(target, 'backups')), [id], `${stage}: the rest of the killed one was removed`);
      assert.deepEqual(
        globSync('in-progress/**', { cwd: target }).filter((path) => path !== 'in-progress'),
        [],
      );
      await wharf(['backup', 'verify', target]);
      reached.push(stage);
    } finally {
      rmSync(target, { recursive: true, force: true });
    }
  }
  return reached;
}

/** Kills `wharf backup restore`. No server starts on the rest, and the next restore continues. */
export async function killRestore(
  target: string,
  database: Database,
  workload: Workload,
  backup: { readonly id: string; readonly moment: string },
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const location = await database.createDataLocation();
    try {
      const args = ['backup', 'restore', target, '--backup', backup.id];
      const restored = join(location.dataDir, 'restoring/data/registry/blobs/sha256');
      const isKilled = await killWhen(args, location, () => globSync('*/*', { cwd: restored }).length > 3);
      if (!isKilled) {
        assert.ok(attempt < ATTEMPTS, 'the restore was never killed in the middle');
        continue;
      }
      const refused = await wharf(['serve', '--listen', '127.0.0.1:0'], location, 1);
      assert.match(refused.stderr, /not completely restored/);
      await wharf(args, location);
      const server = await spawnServer(location);
      await requireAcknowledged(server.url, location, workload, Date.parse(backup.moment));
      await server.stop();
      await requireConsistent(location);
      return;
    } finally {
      await location.remove();
    }
  }
}
