import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import { type Dialect, postgresDialect, sqliteDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

export interface StoreConfig {
  /** Holds the SQLite database, unless there is a URL. */
  readonly dataDir: string;
  readonly databaseUrl?: string | undefined;
  readonly log?: Pick<Log, 'info' | 'warn'>;
}

/** Where the SQLite database of a data directory is. */
export const databaseFile = (dataDir: string): string => join(dataDir, 'wharfinger.db');

/** Opens the database that the configuration asks for, up to date. What it throws has a message of one clear line. */
export async function openStore({ dataDir, databaseUrl, log }: StoreConfig): Promise<Store> {
  const update = async (store: Store, dialect: Dialect): Promise<Store> => {
    try {
      for (const { id, name } of await migrate(store, dialect)) log?.info({ id, name }, 'migrated the database');
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  };
  if (databaseUrl === undefined || databaseUrl === '') {
    const path = databaseFile(dataDir);
    return describing(`the database ${path}`, async () => {
      const store = await openSqlite(path);
      await update(store, sqliteDialect);
      return store.withRowCache({ resource: 'uid', setting: 'key' });
    });
  }
  if (!/^postgres(ql)?:\/\//.test(databaseUrl)) {
    // The URL may hold a password, so it is not repeated.
    throw new Error('the database URL must start with postgres:// or postgresql://; leave it out to use SQLite');
  }
  // Loaded here, so that a server on SQLite starts without its weight.
  const { openPostgres } = await import('./postgres/postgres.ts');
  return describing('the PostgreSQL database', async () => {
    // A migration, or waiting for that of another server, may take longer than any statement of a request.
    const patient = await openPostgres(databaseUrl, { connections: 1, statementTimeoutMs: 0 });
    await (await update(patient, postgresDialect)).close();
    return openPostgres(databaseUrl, {
      onLostConnection: (error) => log?.warn({ error }, 'lost a connection to the database'),
    });
  });
}

async function describing(database: string, open: () => Promise<Store>): Promise<Store> {
  try {
    return await open();
  } catch (error) {
    throw new Error(`cannot open ${database}: ${reason(error)}`, { cause: error });
  }
}

/** Our own words and, at the start only, the driver's: they tell an operator what to mend. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Several addresses of one host give an AggregateError, whose message is empty.
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  const words = error.message.replace(/^Unavailable: /, '');
  return inner === undefined ? words : [words, reason(inner)].filter(Boolean).join(': ');
}
