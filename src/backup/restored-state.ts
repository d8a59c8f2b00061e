import { DatabaseSync } from 'node:sqlite';

/**
 * Deletes from a restored database what belongs to the server that the backup was made of: uploads that were unfinished,
 * whose files are not in a backup, and the holds of running backups. Each statement is run on both databases.
 */
export const cleaningStatements = [
  'DELETE FROM upload',
  "DELETE FROM setting WHERE key >= 'backup.hold.' AND key < 'backup.hold/'",
];

/** The table `upload` exists since this schema. */
const UPLOADS_SINCE = 7;

export const statementsFor = (schema: number): readonly string[] =>
  schema >= UPLOADS_SINCE ? cleaningStatements : cleaningStatements.slice(1);

export function cleanSqlite(path: string): void {
  const database = new DatabaseSync(path);
  try {
    const { version } = database.prepare('SELECT max(id) AS version FROM migration').get() as { version: number };
    for (const statement of statementsFor(version)) database.exec(statement);
  } finally {
    database.close();
  }
}
