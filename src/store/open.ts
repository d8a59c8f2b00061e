import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import { type Dialect, postgresDialect, sqliteDialect } from './dialect.ts';
import { isDiskFull } from './disk-reserve.ts';
import { adviceFor, FULL_DISK_ADVICE, isUnavailable } from './errors.ts';
import { withListingIndexes } from './listing-indexes.ts';
import { migrate, migrations } from './migrations.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

export interface StoreConfig {
  /** Contains the SQLite database, unless `databaseUrl` is set. */
  readonly dataDir: string;
  readonly databaseUrl?: string | undefined;
  readonly log?: Pick<Log, 'info' | 'warn'>;
  /**
   * Identifies the declarations of the resources that this process writes (resource/index/index-parts.ts). PostgreSQL
   * shows it to the servers of other versions that use the database at the same time.
   */
  readonly declarations?: string;
}

/** The path of the SQLite database in a data directory. */
export const databaseFile = (dataDir: string): string => join(dataDir, 'wharfinger.db');

/** The directory in a data directory that exists while a backup is restored into it. */
export const restoreDirectory = (dataDir: string): string => join(dataDir, 'restoring');

/** An interrupted restore must not be taken for a whole one: a start would create a new database beside it. */
function refuseUnfinishedRestore(dataDir: string): void {
  if (!existsSync(restoreDirectory(dataDir))) return;
  throw new Error(
    `a backup was not completely restored into ${dataDir}: run 'wharf backup restore' again, which continues, ` +
      `or delete ${restoreDirectory(dataDir)} to give up the restore`,
  );
}

/** Opens the configured database and migrates it. The message of an error that it throws is one line. */
export async function openStore({ dataDir, databaseUrl, log, declarations }: StoreConfig): Promise<Store> {
  refuseUnfinishedRestore(dataDir);
  const migrateOrClose = async (store: Store, dialect: Dialect): Promise<Store> => {
    try {
      await migrate(store, dialect, migrations, log);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  };
  if (databaseUrl === undefined || databaseUrl === '') {
    const path = databaseFile(dataDir);
    return openNamed(
      `the database ${path}`,
      async () => {
        const store = await openSqlite(path);
        await migrateOrClose(store, sqliteDialect);
        return withListingIndexes(store.withRowCache({ resource: 'uid', setting: 'key' }));
      },
      dataDir,
    );
  }
  if (!/^postgres(ql)?:\/\//.test(databaseUrl)) {
    // The message does not repeat the URL, which may contain a password.
    throw new Error('the database URL must start with postgres:// or postgresql://; leave it out to use SQLite');
  }
  // Imported on demand, so that a server on SQLite starts faster.
  const { openPostgres } = await import('./postgres/postgres.ts');
  return openNamed('the PostgreSQL database', async () => {
    // A migration, or waiting for that of another server, may take longer than any statement of a request.
    const withoutTimeout = await openPostgres(databaseUrl, { connections: 1, statementTimeoutMs: 0 });
    await (await migrateOrClose(withoutTimeout, postgresDialect)).close();
    const store = await openPostgres(databaseUrl, {
      ...(declarations !== undefined && { applicationName: applicationNameOf(declarations) }),
      onLostConnection: (error) => log?.warn({ error }, 'lost a connection to the database'),
    });
    return withListingIndexes(store);
  });
}

/**
 * Opens the configured database as it is, for a command that must not migrate it. It can have an older schema, so only
 * tables and columns of the first migration can be relied on.
 */
export async function openUnmigratedStore({ dataDir, databaseUrl }: StoreConfig): Promise<Store> {
  if (databaseUrl === undefined || databaseUrl === '') {
    return openNamed(`the database ${databaseFile(dataDir)}`, () => openSqlite(databaseFile(dataDir)));
  }
  const { openPostgres } = await import('./postgres/postgres.ts');
  return openNamed('the PostgreSQL database', () => openPostgres(databaseUrl, { connections: 2 }));
}

/** The name of the connections to PostgreSQL of a process with these declarations. */
export const applicationNameOf = (declarations: string): string => `wharfinger ${declarations}`;

/** Adds the name of the database to the message of an error. */
async function openNamed(database: string, open: () => Promise<Store>, dataDir?: string): Promise<Store> {
  try {
    return await open();
  } catch (error) {
    const advice = await adviceAbout(error, dataDir);
    throw new Error([`cannot open ${database}`, messageOf(error), advice].filter(Boolean).join(': '), { cause: error });
  }
}

/** For SQLite, `dataDir` tells whether the disk is full, which SQLite reports in several ways. */
async function adviceAbout(error: unknown, dataDir: string | undefined): Promise<string | undefined> {
  if (!isUnavailable(error)) return undefined;
  const isFull = dataDir !== undefined && (await isDiskFull(dataDir).catch(() => false));
  return isFull ? FULL_DISK_ADVICE : adviceFor(error);
}

/** Includes the message of the driver, which later errors do not: an operator needs it to correct the configuration. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Several addresses of one host give an AggregateError, whose message is empty.
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  const message = error.message.replace(/^Unavailable: /, '');
  return inner === undefined ? message : [message, messageOf(inner)].filter(Boolean).join(': ');
}
