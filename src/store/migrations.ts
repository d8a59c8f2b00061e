import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { throwIfBlocked } from './block-starts.ts';
import type { Dialect } from './dialect.ts';
import { foundation } from './schema/0001-foundation.ts';
import { identity } from './schema/0002-identity.ts';
import { registry } from './schema/0003-registry.ts';
import { delivery } from './schema/0004-delivery.ts';
import { reports } from './schema/0005-reports.ts';
import { sessions } from './schema/0006-sessions.ts';
import { quotas } from './schema/0007-quotas.ts';
import { sinkLimits } from './schema/0008-sink-limits.ts';
import { organizations } from './schema/0009-organizations.ts';
import { listingIndex } from './schema/0010-listing-index.ts';
import type { Migration } from './schema/migration.ts';
import type { Store, Transaction } from './store.ts';

/** In order. To change the schema, append a migration; those that were released never change. */
export const migrations: readonly Migration[] = [
  ...[foundation, identity, registry, delivery, reports],
  ...[sessions, quotas, sinkLimits, organizations, listingIndex],
];

type MigrationLog = Pick<Log, 'info' | 'warn'>;

const silent: MigrationLog = { info() {}, warn() {} };

/** How often the log says that a migration is still running. */
const REPORT_MS = 5_000;
/** How long to wait before a migration that did not get its locks is tried again. */
const LOCK_RETRY_MS = 1_000;

/**
 * Applies the migrations that the database lacks and returns them. Each is one transaction together with the record
 * that it was applied, and only one server migrates at a time. So if the server is killed, its next start applies the
 * rest.
 */
export async function migrate(
  store: Store,
  dialect: Dialect,
  all = migrations,
  log: MigrationLog = silent,
): Promise<Migration[]> {
  const applied: Migration[] = [];
  for (;;) {
    const next = await applyWithRetries(store, dialect, all, log);
    if (next === undefined) return applied;
    applied.push(next);
  }
}

/** Applies the next migration. Tries again while transactions of running servers hold a lock that it needs. */
async function applyWithRetries(
  store: Store,
  dialect: Dialect,
  all: readonly Migration[],
  log: MigrationLog,
): Promise<Migration | undefined> {
  const started = performance.now();
  const seconds = (): number => Math.round((performance.now() - started) / 1000);
  let running: Migration | undefined;
  const timer = setInterval(() => {
    const { id, name } = running ?? {};
    const message = running
      ? 'still migrating the database'
      : 'waiting for another server, which migrates the database';
    log.info({ id, name, seconds: seconds() }, message);
  }, REPORT_MS);
  try {
    for (;;) {
      try {
        const applied = await store.write((tx) =>
          applyNext(tx, dialect, all, log, (next) => {
            running = next;
          }),
        );
        if (applied) log.info({ id: applied.id, name: applied.name }, 'migrated the database');
        return applied;
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
        const { id, name } = running ?? {};
        log.warn({ id, name }, 'the migration did not get its locks, because the database is busy: trying again');
        running = undefined;
        await sleep(LOCK_RETRY_MS);
      }
    }
  } finally {
    clearInterval(timer);
  }
}

/** Whether PostgreSQL gave up waiting for a lock (SQLSTATE lock_not_available). */
const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && (error.cause as { code?: string } | undefined)?.code === '55P03';

/**
 * There are two tables of applied migrations. `migration` has those that a server must know, and every release refuses
 * a database where this table has a higher id than its own newest migration. `compatible_migration` has those that
 * earlier releases can work with. Version 0.1.0, the first release, does not know this second table.
 */
async function applyNext(
  tx: Transaction,
  dialect: Dialect,
  all: readonly Migration[],
  log: MigrationLog,
  onStart: (next: Migration) => void,
): Promise<Migration | undefined> {
  await tx.get(dialect.migrationLock);
  for (const table of ['migration', 'compatible_migration']) {
    await tx.run(
      `CREATE TABLE IF NOT EXISTS ${table} (
        id ${dialect.integer} NOT NULL PRIMARY KEY,
        name ${dialect.text} NOT NULL,
        applied ${dialect.integer} NOT NULL
      ) ${dialect.tableOptions}`,
    );
  }
  await throwIfBlocked(tx);
  const required = await idsIn(tx, 'migration');
  const compatible = await idsIn(tx, 'compatible_migration');
  const requiredVersion = Math.max(0, ...required);
  const version = Math.max(requiredVersion, ...compatible);
  const newest = all.at(-1)?.id ?? 0;
  if (requiredVersion > newest) {
    const versions = `schema ${version}, which needs ${requiredVersion}; this version supports ${newest}`;
    throw new Error(`the database was written by a newer version of Wharfinger (${versions}): start the newer version`);
  }
  const next = all.find(({ id }) => !required.has(id) && !compatible.has(id));
  if (next === undefined) {
    if (version > newest) {
      const message = 'the database was migrated by a newer version of Wharfinger, and this version can work with it';
      log.info({ schema: version, supported: newest }, message);
    }
    return undefined;
  }
  const { id, name, summary, worksFrom } = next;
  onStart(next);
  log.info({ id, name, summary }, 'migrating the database');
  for (const statement of dialect.migrationSettings) await tx.get(statement);
  for (const statement of next.up(dialect)) await tx.run(statement);
  const record = (table: string, known: number) =>
    tx.run(`INSERT INTO ${table} (id, name, applied) VALUES ($1, $2, $3)`, known, name, systemClock());
  if (worksFrom < id) await record('compatible_migration', id);
  if (worksFrom > requiredVersion) await record('migration', worksFrom);
  return next;
}

async function idsIn(tx: Transaction, table: 'migration' | 'compatible_migration'): Promise<Set<number>> {
  return new Set((await tx.all<{ id: number }>(`SELECT id FROM ${table}`)).map(({ id }) => id));
}
