import { statSync } from 'node:fs';
import { databaseFile, type StoreConfig } from './open.ts';
import { connectReader } from './sqlite/sqlite.ts';
import type { Reader, Row } from './store.ts';

/** A database that is opened for reading only: it is neither created nor migrated. */
export interface InspectedDatabase {
  readonly reader: Reader;
  readonly name: 'SQLite' | 'PostgreSQL';
  readonly version: string;
  readonly bytes: number;
  close(): Promise<void>;
}

/** Opens the configured database for reading, whether a server uses it or not. */
export async function inspectDatabase({ dataDir, databaseUrl }: StoreConfig): Promise<InspectedDatabase> {
  if (databaseUrl === undefined || databaseUrl === '') return inspectSqlite(databaseFile(dataDir));
  const { openPostgres } = await import('./postgres/postgres.ts');
  const store = await openPostgres(databaseUrl, { connections: 1, applicationName: 'wharf db status' });
  const { reader } = store;
  const version = await reader.get<{ server_version: string }>('SHOW server_version');
  const size = await reader.get<{ bytes: number }>('SELECT pg_database_size(current_database()) AS bytes');
  return {
    reader,
    name: 'PostgreSQL',
    version: version?.server_version ?? 'unknown',
    bytes: Number(size?.bytes ?? 0),
    close: () => store.close(),
  };
}

function inspectSqlite(path: string): InspectedDatabase {
  const connection = connectReader(path);
  const version = connection.get<{ version: string } & Row>('SELECT sqlite_version() AS version')?.version;
  const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return {
    reader: connection,
    name: 'SQLite',
    version: version ?? 'unknown',
    bytes: sizeOf(path) + sizeOf(`${path}-wal`),
    close: async () => connection.close(),
  };
}
