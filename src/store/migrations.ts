import { systemClock } from '../base/clock.ts';
import type { Dialect } from './dialect.ts';
import { foundation } from './schema/0001-foundation.ts';
import { identity } from './schema/0002-identity.ts';
import { registry } from './schema/0003-registry.ts';
import { delivery } from './schema/0004-delivery.ts';
import { reports } from './schema/0005-reports.ts';
import type { Store, Transaction } from './store.ts';

export interface Migration {
  /** Counts up from 1; the highest one in the database is its version. */
  readonly id: number;
  readonly name: string;
  /** Statements in order. Once released they never change: a mistake is mended by the next migration. */
  up(dialect: Dialect): readonly string[];
}

export const migrations: readonly Migration[] = [foundation, identity, registry, delivery, reports];

/**
 * Brings the database up to date and answers what it applied. A migration and the note that it was applied are one
 * transaction, and only one server works on it at a time: after a kill at any point a next start takes up the rest.
 */
export async function migrate(store: Store, dialect: Dialect, known = migrations): Promise<Migration[]> {
  const applied: Migration[] = [];
  for (;;) {
    const next = await store.write((tx) => applyNext(tx, dialect, known));
    if (next === undefined) return applied;
    applied.push(next);
  }
}

async function applyNext(
  tx: Transaction,
  dialect: Dialect,
  known: readonly Migration[],
): Promise<Migration | undefined> {
  await tx.get(dialect.exclusive);
  await tx.run(
    `CREATE TABLE IF NOT EXISTS migration (
      id ${dialect.integer} NOT NULL PRIMARY KEY,
      name ${dialect.text} NOT NULL,
      applied ${dialect.integer} NOT NULL
    ) ${dialect.table}`,
  );
  const row = await tx.get<{ version: number | null }>('SELECT max(id) AS version FROM migration');
  const version = row?.version ?? 0;
  const newest = known.at(-1)?.id ?? 0;
  if (version > newest) {
    throw new Error(
      `the database was written by a newer version of Wharfinger (schema ${version}; this one knows ${newest}): start that version instead`,
    );
  }
  const next = known.find(({ id }) => id > version);
  if (next === undefined) return undefined;
  for (const statement of next.up(dialect)) await tx.run(statement);
  await tx.run('INSERT INTO migration (id, name, applied) VALUES ($1, $2, $3)', next.id, next.name, systemClock());
  return next;
}
