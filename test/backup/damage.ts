import assert from 'node:assert/strict';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DataLocation } from '../support/databases.ts';
import { createBackup, wharf } from './commands.ts';

/** Changes one bit of a file. */
function flipBit(path: string): void {
  const content = readFileSync(path);
  const at = Math.floor(content.length / 2);
  content[at] = (content[at] as number) ^ 1;
  writeFileSync(path, content);
}

/** Damages files of a target. `verify` names each, a restore refuses, and `--full` repairs blobs. */
export async function damageBackups(target: string, location: DataLocation): Promise<void> {
  const blobs = globSync('blobs/sha256/*/*', { cwd: target }).sort();
  const [flipped = '', missing = ''] = blobs;
  flipBit(join(target, flipped));
  rmSync(join(target, missing));
  const { stderr } = await wharf(['backup', 'verify', target], undefined, 1);
  assert.match(stderr, new RegExp(`${flipped.split('/').at(-1)}: does not match its digest`));
  assert.match(stderr, new RegExp(`${missing.split('/').at(-1)}: is missing`));
  await createBackup(target, location, '--full', '--keep', '1');
  await wharf(['backup', 'verify', target]);

  const [part = ''] = globSync('backups/*/{database.sqlite,table-resource.copy}.zst', { cwd: target });
  const original = readFileSync(join(target, part));
  flipBit(join(target, part));
  const damaged = await wharf(['backup', 'verify', target], undefined, 1);
  assert.match(damaged.stderr, /\.zst does not match its checksum/);
  writeFileSync(join(target, part), original);
  const [manifest = ''] = globSync('backups/*/manifest.json', { cwd: target });
  const text = readFileSync(join(target, manifest), 'utf8');
  writeFileSync(join(target, manifest), text.replace('"format": 1', '"format": 0'));
  const changed = await wharf(['backup', 'verify', target], undefined, 1);
  assert.match(changed.stderr, /the manifest does not match its checksum/);
  writeFileSync(join(target, manifest), text);
}

/** A restore of a backup with a damaged part fails, and leaves nothing that a server would use. */
export async function restoreDamaged(target: string, location: DataLocation): Promise<void> {
  const parts = globSync('backups/*/{database.sqlite,table-resource.copy}.zst', { cwd: target }).sort();
  const path = join(target, parts.at(-1) ?? '');
  const original = readFileSync(path);
  flipBit(path);
  await wharf(['backup', 'restore', target], location, 1);
  const refused = await wharf(['serve', '--listen', '127.0.0.1:0'], location, 1);
  assert.match(refused.stderr, /not completely restored/);
  writeFileSync(path, original);
  await wharf(['backup', 'restore', target], location);
}
