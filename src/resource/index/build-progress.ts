import type { Reader, Row, Transaction } from '../../store/store.ts';

/** How far the listing index of a kind is built (table `listing_index_progress`). */
export interface BuildProgress extends Row {
  readonly kind: string;
  readonly generation: number;
  /** The last resource or list that was processed. */
  readonly cursor: string;
  /** Counts the passes over all resources. A pass that finds nothing to do ends the build. */
  readonly pass: number;
  /** The resources that the current pass had to index or to skip. */
  readonly found: number;
  /** The resources that were indexed. */
  readonly done: number;
  /** All resources of the kind when the build began. */
  readonly total: number;
  readonly started: number;
  readonly updated: number;
}

const COLUMNS = 'kind, generation, cursor, pass, found, done, total, started, updated';
const FIND = `SELECT ${COLUMNS} FROM listing_index_progress WHERE kind = $1`;
const PUT = `INSERT INTO listing_index_progress (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  ON CONFLICT (kind) DO UPDATE SET generation = excluded.generation, cursor = excluded.cursor, pass = excluded.pass,
    found = excluded.found, done = excluded.done, total = excluded.total, started = excluded.started,
    updated = excluded.updated`;

export const findProgress = async (db: Reader, kind: string): Promise<BuildProgress | undefined> =>
  db.get<BuildProgress>(FIND, kind);

export const putProgress = async (tx: Transaction, progress: BuildProgress): Promise<void> => {
  const { kind, generation, cursor, pass, found, done, total, started, updated } = progress;
  await tx.run(PUT, kind, generation, cursor, pass, found, done, total, started, updated);
};

/** Returns the percentage that is done, below 100 until the build has ended. */
export const percentageOf = (progress: BuildProgress | undefined): number =>
  progress === undefined ? 0 : Math.min(99, Math.floor((100 * progress.done) / Math.max(1, progress.total)));
