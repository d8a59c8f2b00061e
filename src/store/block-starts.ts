import type { Reader, Transaction } from './store.ts';

/**
 * The id of a row in the table `migration` that makes every server refuse the database, also those of releases that do
 * not know what it means: they take it for the schema of a newer version. Its name is the reason.
 */
export const BLOCK = 1_000_000;

/** Makes every server refuse to start on the database. `reason` says why, and what to do. */
export async function blockStarts(tx: Pick<Transaction, 'run'>, reason: string, now: number): Promise<void> {
  await tx.run(`DELETE FROM migration WHERE id = ${BLOCK}`);
  await tx.run(`INSERT INTO migration (id, name, applied) VALUES (${BLOCK}, $1, $2)`, reason, now);
}

export async function unblockStarts(tx: Pick<Transaction, 'run'>): Promise<void> {
  await tx.run(`DELETE FROM migration WHERE id = ${BLOCK}`);
}

/** Throws the reason if servers must not start on the database. */
export async function throwIfBlocked(reader: Reader): Promise<void> {
  const row = await reader.get<{ name: string }>(`SELECT name FROM migration WHERE id = ${BLOCK}`);
  if (row) throw new Error(row.name);
}
