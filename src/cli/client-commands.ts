import type { Command } from 'commander';
import { addAreas } from './areas.ts';
import { addAuth } from './auth/auth.ts';
import { addBackup } from './backup/backup.ts';
import { addConfig } from './config.ts';
import { addDb } from './db/db.ts';
import { addPing } from './ping.ts';
import { addRegistry } from './registry/registry.ts';
import { addKeys } from './server/keys.ts';
import { addOwner } from './server/owner.ts';
import { addVersion } from './version.ts';

/** Adds every command except `serve`. */
export async function addClientCommands(program: Command, args: readonly string[]): Promise<void> {
  addAuth(program);
  await addAreas(program, args);
  addRegistry(program);
  addConfig(program);
  addDb(program);
  addKeys(program);
  addOwner(program);
  addBackup(program);
  addPing(program);
  addVersion(program);
}
