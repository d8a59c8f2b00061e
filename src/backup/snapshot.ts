import { BLOCK } from '../store/block-starts.ts';
import { migrations } from '../store/migrations.ts';
import type { ListedBlob } from './blob-list.ts';
import type { BackupDatabase } from './manifest.ts';

/** Writes a part of a backup: compresses, measures and stores what `open` yields. */
export type WritePart = (name: string, open: () => AsyncIterable<Uint8Array>) => Promise<void>;

/** The state of a database at one moment, while others go on writing to it. */
export interface DatabaseSnapshot {
  /** Every commit that was acknowledged before this time is in the snapshot. Milliseconds since the epoch. */
  readonly moment: number;
  readonly version: SchemaVersion;
  /** The value of the setting that is sealed with the master key. */
  readonly masterKeyCheck: string | undefined;
  /** Yields the blobs that repos link, in the order of their digests. */
  blobs(): AsyncIterable<ListedBlob>;
  write(writePart: WritePart): Promise<BackupDatabase>;
  /** Ends the snapshot and removes its temporary files. */
  close(): Promise<void>;
}

/** Which migrations a database has. */
export interface SchemaVersion {
  /** The highest migration. */
  readonly schema: number;
  /** The migration that a version must know to work with the database. */
  readonly requires: number;
}

export const BLOBS = 'SELECT digest, max(size) AS size FROM blob_link GROUP BY digest ORDER BY digest';
export const settingStatement = (parameter: '?' | '$1'): string => `SELECT value FROM setting WHERE key = ${parameter}`;

/** A row of one of the two tables of applied migrations (src/store/migrations.ts). */
export interface MigrationRow {
  readonly id: number;
  readonly name: string;
}

/**
 * Returns the version of a schema. Refuses a database that a newer version has migrated, because this one may not know
 * all that belongs to a backup, and one that servers must not use.
 */
export function schemaVersion(required: readonly MigrationRow[], compatible: readonly MigrationRow[]): SchemaVersion {
  const block = required.find(({ id }) => id === BLOCK);
  if (block) throw new Error(block.name);
  const requires = Math.max(0, ...required.map(({ id }) => id));
  if (requires === 0) throw new Error('the database has no schema: start the server once');
  const schema = Math.max(requires, ...compatible.map(({ id }) => id));
  const newest = migrations.at(-1)?.id ?? 0;
  if (schema <= newest) return { schema, requires };
  const versions = `schema ${schema}; this version supports ${newest}`;
  throw new Error(`the database was written by a newer version of Wharfinger (${versions}): use the newer wharf`);
}
