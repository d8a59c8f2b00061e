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
      -- With a lock until the commit, so that a repair does not begin before the write is visible.
      LOOP
        PERFORM 1 FROM unindexed_write WHERE kind = changed FOR KEY SHARE;
        EXIT WHEN FOUND;
        INSERT INTO unindexed_write (kind) VALUES (changed) ON CONFLICT DO NOTHING;
      END LOOP;
    END IF;
    RETURN NULL;
  END $$`;
const DROP_TRIGGER = 'DROP TRIGGER IF EXISTS unindexed_write ON resource';
const WATCHED = `SELECT count(*) AS n FROM pg_trigger WHERE tgrelid = 'resource'::regclass AND tgname = 'unindexed_write'
  AND strpos(pg_get_triggerdef(oid), quote_literal($1)) > 0`;
const CONNECTED = `SELECT count(*) AS n FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name LIKE 'wharfinger%' AND application_name <> $1`;
const RECORDED = 'SELECT kind FROM unindexed_write ORDER BY kind';
const RECORD = 'INSERT INTO unindexed_write (kind) VALUES ($1) ON CONFLICT DO NOTHING';
const FORGET = 'DELETE FROM unindexed_write WHERE kind = $1';
/** Stands before a kind that is being repaired. No kind begins like this. */
const REPAIRING = 'repairing:';

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

/** Whether the writes of all servers whose declarations differ from `declarations` are recorded on a PostgreSQL. */
export async function isWatching(db: Reader, declarations: string): Promise<boolean> {
  return Number((await db.get<{ n: number }>(WATCHED, applicationNameOf(declarations)))?.n ?? 0) > 0;
}

/** Counts the connections of servers with other declarations to a PostgreSQL. */
export async function countOtherConnections(db: Reader, declarations: string): Promise<number> {
  return Number((await db.get<{ n: number }>(CONNECTED, applicationNameOf(declarations)))?.n ?? 0);
}

/** The kinds of which a server with other declarations has changed resources, and whose repair has not ended. */
export async function findUnindexedKinds(db: Reader): Promise<string[]> {
  const recorded = await db.all<{ kind: string }>(RECORDED);
  return [...new Set(recorded.map(({ kind }) => (kind.startsWith(REPAIRING) ? kind.slice(REPAIRING.length) : kind)))];
}

/** Call it before the index of the kind is repaired: what is written later is recorded again. */
export async function beginRepair(tx: Transaction, kind: string): Promise<void> {
  await tx.run(RECORD, REPAIRING + kind);
  await tx.run(FORGET, kind);
}

/** Call it when the repair has succeeded. One that fails or is killed is repeated. */
export const endRepair = async (tx: Transaction, kind: string): Promise<void> =>
  void (await tx.run(FORGET, REPAIRING + kind));
