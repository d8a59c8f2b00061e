import { existsSync } from 'node:fs';
import type { Config } from '../../config.ts';
import type { Store } from '../../store/store.ts';
import type { Terminal } from '../output/terminal.ts';
import { protectData } from './protect-data.ts';

/** Opens the database of a server directly, whether the server is running or not. Refuses that of another directory. */
export async function openServerStore(
  { data, databaseUrl }: Pick<Config, 'data' | 'databaseUrl'>,
  terminal: Terminal,
): Promise<Store> {
  // Loaded here so that the other commands start without loading the server.
  const { databaseFile, openStore } = await import('../../store/open.ts');
  const { resources } = await import('../../domains/domains.ts');
  const { declarationsId } = await import('../../resource/index/register-declarations.ts');
  const { requireDatabaseFile, requireOwnDatabase } = await import('../../identity/data-directory.ts');
  // Opening would create the database, and a wrong path would go unnoticed.
  if (databaseUrl === undefined && !existsSync(databaseFile(data))) {
    requireDatabaseFile(data);
    throw new Error(`no database in ${data}: start the server once, or give its data directory with --data`);
  }
  protectData(data, terminal);
  const store = await openStore({ dataDir: data, databaseUrl, declarations: declarationsId(resources) });
  try {
    await requireOwnDatabase(store.reader, data);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}
