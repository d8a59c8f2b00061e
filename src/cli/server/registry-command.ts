import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Blobs } from '../../blobs/blobs.ts';
import type { Config } from '../../config.ts';
import type { Store } from '../../store/store.ts';
import { terminalOf } from '../output/terminal.ts';
import { outputs } from '../settings/config-file.ts';
import { openServerStore } from './open-server-store.ts';
import { addSettingOptions, readServerSettings } from './setting-options.ts';

/** Adds the options that say which database and which blobs to open. */
export function addStorageOptions(command: Command): Command {
  command.addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  return addSettingOptions(command, ['data', 'databaseUrl']);
}

export interface Storage {
  readonly store: Store;
  readonly blobs: Blobs;
  /** The directory of the blobs. */
  readonly directory: string;
  readonly config: Config;
}

/** Opens the database and the blobs and runs `work`, whether a server is running or not. */
export async function withStorage(command: Command, work: (storage: Storage) => Promise<void>): Promise<void> {
  const { config } = await readServerSettings(command);
  // Loaded here so that the other commands start without loading the server.
  const { openFilesystemBlobs } = await import('../../blobs/filesystem.ts');
  const { readDatabaseId } = await import('../../identity/data-directory.ts');
  const { registryDirectory, requireOwnRegistry } = await import('../../oci/registry-directory.ts');
  const directory = registryDirectory(config.data);
  if (!existsSync(directory)) {
    throw new Error(`no registry in ${config.data}: start the server once, or give its data directory with --data`);
  }
  const store = await openServerStore(config, terminalOf(command));
  try {
    // Garbage collection would delete the blobs of another database.
    await requireOwnRegistry(directory, (await readDatabaseId(store.reader)) ?? '');
    await work({ store, blobs: await openFilesystemBlobs(directory), directory, config });
  } finally {
    await store.close();
  }
}
