import { applicationNameOf } from '../../store/open.ts';
import type { Reader, Transaction } from '../../store/store.ts';

/*
 * Servers with other declarations that use the same PostgreSQL: those of the release before, during a rolling upgrade.
 * They do not know the new parts of a listing index and do not keep them up to date. So parts are built when no such server
 * is connected. If one writes nevertheless, a trigger records it, and the index is checked and repaired afterwards.
 * SQLite has no trigger: all processes that use one database are of the same version.
 */

const RECORD_WRITE = `CREATE OR REPLACE FUNCTION record_unindexed_write() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE changed text COLLATE "C";
  BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD.kind; ELSE changed := NEW.kind; END IF;
    IF EXISTS (SELECT 1 FROM listing_index WHERE kind = changed AND generation > 0) THEN
      INSERT INTO unindexed_write (kind) VALUES (changed) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
  END $$`;
const DROP_TRIGGER = 'DROP TRIGGER IF EXISTS unindexed_write ON resource';
const CONNECTED = `SELECT count(*) AS n FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name LIKE 'wharfinger%' AND application_name <> $1`;
const RECORDED = 'SELECT kind FROM unindexed_write ORDER BY kind';
const FORGET = 'DELETE FROM unindexed_write WHERE kind = $1';

/** Records writes of all servers whose declarations differ from `declarations`, from this transaction on. */
export async function watchOtherServers(tx: Transaction, declarations: string): Promise<void> {
  if (tx.isOnlyWriter) return;
  if (!/^[0-9a-f]+$/.test(declarations)) throw new Error(`invalid id of declarations: ${declarations}`);
  // The trigger needs a lock for which all writers wait, so it must not wait long for it itself.
  await tx.run('SET LOCAL lock_timeout = 1000');
  await tx.run(RECORD_WRITE);
  await tx.run(DROP_TRIGGER);
  await tx.run(`CREATE TRIGGER unindexed_write AFTER INSERT OR UPDATE OR DELETE ON resource FOR EACH ROW
    WHEN (current_setting('application_name') <> '${applicationNameOf(declarations)}')
    EXECUTE FUNCTION record_unindexed_write()`);
}

/** Counts the connections of servers with other declarations to a PostgreSQL. */
export async function countOtherConnections(db: Reader, declarations: string): Promise<number> {
  return Number((await db.get<{ n: number }>(CONNECTED, applicationNameOf(declarations)))?.n ?? 0);
}

/** The kinds of which a server with other declarations has changed resources. */
export const findUnindexedKinds = async (db: Reader): Promise<string[]> =>
  (await db.all<{ kind: string }>(RECORDED)).map(({ kind }) => kind);

/** Call it before the index of the kind is checked: what is written later is recorded again. */
export const forgetUnindexedWrites = async (tx: Transaction, kind: string): Promise<void> =>
  void (await tx.run(FORGET, kind));
