import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { freshDatabase } from './postgres.ts';

/** The data directory and the database of a server. The data persists until `remove`, so a server can be restarted. */
export interface DataLocation {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  remove(): Promise<void>;
}

/** A database that the server supports. */
export interface Database {
  readonly name: string;
  /** Creates an empty data directory and an empty database. */
  createDataLocation(): Promise<DataLocation>;
}

const temporaryDirectory = (): string => mkdtempSync(join(tmpdir(), 'wharf-data-'));

export const databases: readonly Database[] = [
  {
    name: 'SQLite',
    async createDataLocation() {
      const dataDir = temporaryDirectory();
      return { dataDir, databaseUrl: undefined, remove: async () => rmSync(dataDir, { recursive: true, force: true }) };
    },
  },
  {
    name: 'PostgreSQL',
    async createDataLocation() {
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

/** Returns the database of this name. SQLite is the default. */
export function findDatabase(name = 'SQLite'): Database {
  const database = databases.find((candidate) => candidate.name === name);
  if (!database) throw new Error(`unknown database ${name}; use ${databases.map((known) => known.name).join(' or ')}`);
  return database;
}

/** Opens a store on new data. Closing the store also removes the data. */
export async function temporaryStore(database: Database): Promise<Store> {
  const location = await database.createDataLocation();
  const store = await openStore(location);
  const close = async () => {
    await store.close();
    await location.remove();
  };
  return { ...store, close };
}
