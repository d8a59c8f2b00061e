import type { Reader, Row, Transaction } from '../../store/store.ts';

/** The state of the sink of a subscription. Times are in milliseconds. */
export interface SinkRow extends Row {
  readonly failing_since: number | null;
  readonly disabled: number | null;
  readonly reason: string | null;
}

// `since` is the highest event id so far. Events that committed before have at most this id, and events of transactions
// that begin later have higher ones, in whatever order they become visible.
const ADD = `INSERT INTO sink (subscription, parent, since, rest, failures)
  VALUES ($1, $2, (SELECT coalesce(max(id), 0) FROM outbox), 0, 0)`;
const COUNT = 'SELECT count(*) AS n FROM sink WHERE parent = $1';
const DELETE = 'DELETE FROM sink WHERE subscription = $1';
const FIND = 'SELECT failing_since, disabled, reason FROM sink WHERE subscription = $1';
const ENABLE = `UPDATE sink SET disabled = NULL, reason = NULL, failing_since = NULL, failures = 0, rest = 0, due = $2
  WHERE subscription = $1 AND disabled IS NOT NULL`;

/** Adds the sink of a new subscription, which receives events from now on. */
export const addSink = async (tx: Transaction, uid: string, parent: string): Promise<void> =>
  void (await tx.run(ADD, uid, parent));

export const countSinks = async (db: Reader, parent: string): Promise<number> =>
  (await db.get<{ n: number }>(COUNT, parent))?.n ?? 0;

/** Deletes a sink. The subscription receives nothing any more, not even pending deliveries. */
export const dropSink = async (tx: Transaction, uid: string): Promise<void> => void (await tx.run(DELETE, uid));

export const findSink = async (db: Reader, uid: string): Promise<SinkRow | undefined> => db.get<SinkRow>(FIND, uid);

export const enableSink = async (tx: Transaction, uid: string, now: number): Promise<void> =>
  void (await tx.run(ENABLE, uid, now));
