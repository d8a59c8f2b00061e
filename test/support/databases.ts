import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { freshDatabase } from './postgres.ts';

/** Where a server keeps its data; opening it again finds what was there. */
export interface Home {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  remove(): Promise<void>;
}

export interface Database {
  readonly name: string;
  home(): Promise<Home>;
}

const temporaryDirectory = (): string => mkdtempSync(join(tmpdir(), 'wharf-data-'));

export const databases: readonly Database[] = [
  {
    name: 'SQLite',
    async home() {
      const dataDir = temporaryDirectory();
      return { dataDir, databaseUrl: undefined, remove: async () => rmSync(dataDir, { recursive: true, force: true }) };
    },
  },
  {
    name: 'PostgreSQL',
    async home() {
      const { url, drop } = await freshDatabase();
      const dataDir = temporaryDirectory();
      const remove = async () => {
        rmSync(dataDir, { recursive: true, force: true });
        await drop();
      };
      return { dataDir, databaseUrl: url, remove };
    },
  },
];

/** The one that a command line asks for. */
export function databaseNamed(wanted = 'SQLite'): Database {
  const database = databases.find(({ name }) => name === wanted);
  if (!database)
    throw new Error(`there is no database ${wanted}; there is ${databases.map(({ name }) => name).join(', ')}`);
  return database;
}

/** An open store of its own; closing it also removes its data. */
export async function temporaryStore(database: Database): Promise<Store> {
  const home = await database.home();
  const store = await openStore(home);
  const close = async () => {
    await store.close();
    await home.remove();
  };
  return { ...store, close };
}
