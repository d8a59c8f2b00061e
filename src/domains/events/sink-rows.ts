import type { Reader, Row, Transaction } from '../../store/store.ts';

/** How the sink of a subscription fares; times in milliseconds. */
export interface SinkRow extends Row {
  readonly failing_since: number | null;
  readonly disabled: number | null;
  readonly reason: string | null;
}

// Whatever committed before has a lower id than this, and whatever begins after it a higher one, in whichever order
// they become visible.
const ADD = `INSERT INTO sink (subscription, parent, since, rest, failures)
  VALUES ($1, $2, (SELECT coalesce(max(id), 0) FROM outbox), 0, 0)`;
const COUNT = 'SELECT count(*) AS n FROM sink WHERE parent = $1';
const DROP = 'DELETE FROM sink WHERE subscription = $1';
const FIND = 'SELECT failing_since, disabled, reason FROM sink WHERE subscription = $1';
const ENABLE = `UPDATE sink SET disabled = NULL, reason = NULL, failing_since = NULL, failures = 0, rest = 0, due = $2
  WHERE subscription = $1 AND disabled IS NOT NULL`;

/** From now on the subscription hears. */
export const addSink = async (tx: Transaction, uid: string, parent: string): Promise<void> =>
  void (await tx.run(ADD, uid, parent));

export const countSinks = async (db: Reader, parent: string): Promise<number> =>
  (await db.get<{ n: number }>(COUNT, parent))?.n ?? 0;

/** The subscription hears no more, not even what is on its way. */
export const dropSink = async (tx: Transaction, uid: string): Promise<void> => void (await tx.run(DROP, uid));

export const findSink = async (db: Reader, uid: string): Promise<SinkRow | undefined> => db.get<SinkRow>(FIND, uid);

export const enableSink = async (tx: Transaction, uid: string, now: number): Promise<void> =>
  void (await tx.run(ENABLE, uid, now));
