import { systemClock } from '../base/clock.ts';
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
import type { Migration } from './schema/migration.ts';
import type { Store, Transaction } from './store.ts';

/** In order. To change the schema, append a migration; those that were released never change. */
export const migrations: readonly Migration[] = [
  ...[foundation, identity, registry, delivery, reports],
  ...[sessions, quotas, sinkLimits, organizations],
];

/**
 * Applies the migrations that the database lacks and returns them. Each is one transaction together with the record
 * that it was applied, and only one server migrates at a time. So if the server is killed, its next start applies the
 * rest.
 */
export async function migrate(store: Store, dialect: Dialect, all = migrations): Promise<Migration[]> {
  const applied: Migration[] = [];
  for (;;) {
    const next = await store.write((tx) => applyNext(tx, dialect, all));
    if (next === undefined) return applied;
    applied.push(next);
  }
}

async function applyNext(tx: Transaction, dialect: Dialect, all: readonly Migration[]): Promise<Migration | undefined> {
  await tx.get(dialect.migrationLock);
  await tx.run(
    `CREATE TABLE IF NOT EXISTS migration (
      id ${dialect.integer} NOT NULL PRIMARY KEY,
      name ${dialect.text} NOT NULL,
      applied ${dialect.integer} NOT NULL
    ) ${dialect.tableOptions}`,
  );
  const row = await tx.get<{ version: number | null }>('SELECT max(id) AS version FROM migration');
  const version = row?.version ?? 0;
  const newest = all.at(-1)?.id ?? 0;
  if (version > newest) {
    const versions = `schema ${version}; this version supports ${newest}`;
    throw new Error(`the database was written by a newer version of Wharfinger (${versions}): start the newer version`);
  }
  const next = all.find(({ id }) => id > version);
  if (next === undefined) return undefined;
  for (const statement of next.up(dialect)) await tx.run(statement);
  await tx.run('INSERT INTO migration (id, name, applied) VALUES ($1, $2, $3)', next.id, next.name, systemClock());
  return next;
}
