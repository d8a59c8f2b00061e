import { createHash } from 'node:crypto';
import type { SchemaVersion } from './snapshot.ts';
import { type BackupTarget, writeText } from './target.ts';

/** The version of the format of targets and manifests. A reader refuses a higher one. */
export const FORMAT = 1;
const TARGET_FILE = 'wharf-backups.json';

/** A file of one backup. */
export interface Part {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

/** A table of a PostgreSQL database: a part with the text that COPY writes. */
export interface CopiedTable {
  readonly name: string;
  readonly part: string;
  readonly columns: readonly string[];
  readonly rows: number;
}

/** The next value of a generated column. */
export interface Sequence {
  readonly table: string;
  readonly column: string;
  readonly lastValue: number;
}

export type BackupDatabase = SchemaVersion &
  (
    | { readonly kind: 'sqlite'; readonly part: string; readonly bytes: number }
    | {
        readonly kind: 'postgresql';
        readonly tables: readonly CopiedTable[];
        readonly sequences: readonly Sequence[];
      }
  );

export interface UnavailableBlob {
  readonly digest: string;
  readonly problem: string;
}

/** Describes a whole backup. */
export interface Manifest {
  readonly format: number;
  readonly id: string;
  /** The version of Wharfinger that created it. */
  readonly version: string;
  /** Every change that was acknowledged before this time is in the backup. ISO 8601. */
  readonly moment: string;
  readonly finished: string;
  readonly database: BackupDatabase;
  /** Files of the data directory, by name. Each is a part. */
  readonly files: readonly string[];
  readonly masterKey: {
    readonly included: boolean;
    /** Identifies the key that the secrets are encrypted with, and does not reveal it. */
    readonly id: string | undefined;
    readonly note: string;
  };
  readonly blobs: {
    /** The part that lists the digests and sizes. */
    readonly part: string;
    readonly count: number;
    readonly bytes: number;
    /** What this backup copied; earlier backups had copied the rest. */
    readonly copied: number;
    readonly copiedBytes: number;
    /** Blobs that the server itself had lost. */
    readonly unavailable: readonly UnavailableBlob[];
  };
  readonly parts: readonly Part[];
}

export const partKey = (id: string, name: string): string => `backups/${id}/${name}`;
export const manifestKey = (id: string): string => partKey(id, 'manifest.json');

export function findPart({ id, parts }: Manifest, name: string): Part {
  const part = parts.find((candidate) => candidate.name === name);
  if (!part) throw new Error(`the manifest of the backup ${id} does not name the part ${name}`);
  return part;
}

/** Returns the text of a manifest, with a checksum of its own. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: checksum(manifest) }, null, 2)}\n`;
}

export class DamagedManifestError extends Error {
  override readonly name = 'DamagedManifestError';
}

export function parseManifest(text: string): Manifest {
  let parsed: Manifest & { readonly sha256: string };
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new DamagedManifestError('the manifest is not JSON');
  }
  const { sha256, ...manifest } = parsed;
  if (typeof manifest.format === 'number' && manifest.format > FORMAT) throw newerFormat(manifest.format);
  if (sha256 !== checksum(manifest)) throw new DamagedManifestError('the manifest does not match its checksum');
  requireSafeNames(manifest);
  return manifest;
}

/** The files of a data directory that a backup can contain. */
export const DATA_FILES: readonly string[] = ['owner.json', 'master.key'];

/** Refuses names by which a forged manifest would make a restore write or read elsewhere. */
function requireSafeNames({ files, parts }: Manifest): void {
  const isSafe =
    files.every((name) => DATA_FILES.includes(name)) && parts.every(({ name }) => /^\w[\w.-]*$/.test(name));
  if (!isSafe) throw new DamagedManifestError('the manifest has invalid names of files');
}

/** Numbers and the order of fields survive JSON.parse, so the text is the same after it. */
const checksum = (manifest: Manifest): string => createHash('sha256').update(JSON.stringify(manifest)).digest('hex');

const newerFormat = (format: number): Error =>
  new Error(`the backup has the format ${format}; this version reads up to ${FORMAT}: use a newer version of wharf`);

/** Marks an empty target as one for backups. Refuses a place that contains something else. */
export async function prepareTarget(target: BackupTarget): Promise<void> {
  if (await isTarget(target)) return;
  if (!(await target.isEmpty())) {
    throw new Error(`${target.name} is not empty and has no backups: name an empty place, so that nothing is mixed up`);
  }
  await writeText(target, TARGET_FILE, `${JSON.stringify({ format: FORMAT, contents: 'backups of Wharfinger' })}\n`);
}

/** Refuses a place that has no backups. */
export async function requireTarget(target: BackupTarget): Promise<void> {
  if (!(await isTarget(target))) {
    throw new Error(`${target.name} has no backups: check the name, or run 'wharf backup create' first`);
  }
}

async function isTarget(target: BackupTarget): Promise<boolean> {
  const text = await target.readText(TARGET_FILE);
  if (text === undefined) return false;
  const { format } = JSON.parse(text) as { format: number };
  if (format > FORMAT) throw newerFormat(format);
  return true;
}

/** A backup that has a manifest, which may be damaged. */
export interface FoundBackup {
  readonly id: string;
  readonly manifest: Manifest | undefined;
  /** What is wrong with the manifest. */
  readonly problem: string | undefined;
}

/** Returns all backups, the oldest first. */
export async function findBackups(target: BackupTarget): Promise<FoundBackup[]> {
  const found: FoundBackup[] = [];
  for await (const { key } of target.list('backups/')) {
    const id = /^backups\/([^/]+)\/manifest\.json$/.exec(key)?.[1];
    if (id !== undefined) found.push(await readManifest(target, id));
  }
  return found;
}

async function readManifest(target: BackupTarget, id: string): Promise<FoundBackup> {
  try {
    const text = await target.readText(manifestKey(id));
    if (text === undefined) return { id, manifest: undefined, problem: 'the manifest is missing' };
    return { id, manifest: parseManifest(text), problem: undefined };
  } catch (error) {
    if (!(error instanceof DamagedManifestError)) throw error;
    return { id, manifest: undefined, problem: error.message };
  }
}
