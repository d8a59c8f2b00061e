import type { Reader, Row, Transaction } from '../../store/store.ts';

/** The state of the sink of a subscription. Times are in milliseconds. */
export interface SinkRow extends Row {
  readonly failing_since: number | null;
  readonly disabled: number | null;
  readonly reason: string | null;
  /** As stored (maker.ts). */
  readonly maker: string | null;
  readonly paused: number | null;
  readonly accepted: number | null;
  /** Null if no handshake is required. 0 until the sink has permitted deliveries, then the time when it did. */
  readonly handshake: number | null;
  readonly allowed_rate: number | null;
}

/** The row of a sink that has no special state. */
export const ENABLED: SinkRow = {
  failing_since: null,
  disabled: null,
  reason: null,
  maker: null,
  paused: null,
  accepted: null,
  handshake: null,
  allowed_rate: null,
};

// `since` is the highest event id so far. Events that committed before have at most this id, and events of transactions
// that begin later have higher ones, in whatever order they become visible.
const ADD = `INSERT INTO sink (subscription, parent, maker, since, rest, failures)
  VALUES ($1, $2, $3, (SELECT coalesce(max(id), 0) FROM outbox), 0, 0)`;
const COUNT = 'SELECT count(*) AS n FROM sink WHERE parent = $1';
const DELETE = 'DELETE FROM sink WHERE subscription = $1';
const FIND = `SELECT ${Object.keys(ENABLED).join(', ')} FROM sink WHERE subscription = $1`;
const ENABLE = `UPDATE sink SET disabled = NULL, reason = NULL, failing_since = NULL, failures = 0, rest = 0, due = $2
  WHERE subscription = $1 AND disabled IS NOT NULL`;
const DISABLE = 'UPDATE sink SET disabled = $2, reason = $3, due = NULL WHERE subscription = $1';
// While a server has the lease, `due` is the time when the lease expires.
const TAKE_OVER = `UPDATE sink SET maker = $2, paused = NULL,
    rest = CASE WHEN paused IS NULL THEN rest ELSE 0 END,
    due = CASE WHEN paused IS NULL OR lease IS NOT NULL OR disabled IS NOT NULL THEN due ELSE $3 END
  WHERE subscription = $1`;
const SET_HANDSHAKE = 'UPDATE sink SET handshake = $2, allowed_rate = NULL, reason = NULL WHERE subscription = $1';

/** Adds the sink of a new subscription, which receives events from now on. */
export const addSink = async (tx: Transaction, uid: string, parent: string, maker?: string): Promise<void> =>
  void (await tx.run(ADD, uid, parent, maker ?? null));

export const countSinks = async (db: Reader, parent: string): Promise<number> =>
  (await db.get<{ n: number }>(COUNT, parent))?.n ?? 0;

/** Deletes a sink. The subscription receives nothing any more, not even pending deliveries. */
export const dropSink = async (tx: Transaction, uid: string): Promise<void> => void (await tx.run(DELETE, uid));

export const findSink = async (db: Reader, uid: string): Promise<SinkRow | undefined> => db.get<SinkRow>(FIND, uid);

export const enableSink = async (tx: Transaction, uid: string, now: number): Promise<void> =>
  void (await tx.run(ENABLE, uid, now));

export const SECRET_LOST_REASON = 'its secret was lost with the master key: rotate the secret';

/** Disables the sink of a subscription whose secret was lost. */
export const disableSinkWithoutSecret = async (tx: Transaction, uid: string, now: number): Promise<void> =>
  void (await tx.run(DISABLE, uid, now, SECRET_LOST_REASON));

/** Makes another identity the maker of the subscription, and resumes it if it is paused. */
export const takeOverSink = async (tx: Transaction, uid: string, maker: string, now: number): Promise<void> =>
  void (await tx.run(TAKE_OVER, uid, maker, now));

/** Requires a handshake before the next delivery, or requires none any more. */
export const setHandshake = async (tx: Transaction, uid: string, isRequired: boolean): Promise<void> =>
  void (await tx.run(SET_HANDSHAKE, uid, isRequired ? 0 : null));
