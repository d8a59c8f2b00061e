import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseDigest } from '../blobs/digest.ts';
import { blobKey, type ListedBlob, matchBlobs, mergeBlobLists, parseBlobList } from './blob-list.ts';
import type { FoundBackup, Manifest, Part } from './manifest.ts';
import { partKey } from './manifest.ts';
import type { Progress } from './progress.ts';
import { decompress, forEachConcurrently, measured } from './streams.ts';
import { type BackupTarget, MissingFileError } from './target.ts';

export interface VerifyResult {
  readonly backups: number;
  readonly blobs: number;
  readonly bytes: number;
  /** One sentence for each file that is missing or damaged. */
  readonly problems: readonly string[];
}

const CONCURRENT = 4;

/** Reads every file of these backups and compares it with its checksum. */
export async function verifyBackups(
  target: BackupTarget,
  backups: readonly FoundBackup[],
  progress: Progress,
): Promise<VerifyResult> {
  const problems: string[] = [];
  const totals = { blobs: 0, bytes: 0 };
  await withSpool(async (directory) => {
    const lists: string[] = [];
    for (const { id, manifest, problem } of backups) {
      if (!manifest) {
        problems.push(`backup ${id}: ${problem}`);
        continue;
      }
      progress.say(`reading the parts of the backup ${id}`);
      const list = await verifyParts(target, manifest, directory, problems);
      if (list) lists.push(list);
      totals.bytes += manifest.parts.reduce((sum, { size }) => sum + size, 0);
    }
    // An earlier backup may have copied a blob that the server has lost since then.
    const unavailable = new Map(
      backups.flatMap(({ id, manifest }) =>
        (manifest?.blobs.unavailable ?? []).map(
          ({ digest, problem }) =>
            [digest, `backup ${id}: the server did not have the blob ${digest}: ${problem}`] as const,
        ),
      ),
    );
    const all = (): AsyncGenerator<ListedBlob> => mergeBlobLists(lists.map(readSpooledList));
    let expected = 0;
    for await (const { size } of all()) expected += size;
    let done = 0;
    const onBytes = (count: number): void => {
      done += count;
      progress.update('bytes of blobs', done, expected);
    };
    await forEachConcurrently(matchBlobs(all(), target.list('blobs/')), CONCURRENT, async (blob) => {
      const loss = blob.stored === undefined ? unavailable.get(blob.digest) : undefined;
      if (loss !== undefined) {
        problems.push(loss);
        return;
      }
      totals.blobs++;
      totals.bytes += blob.size;
      const problem = await verifyBlob(target, blob, onBytes);
      if (problem !== undefined) problems.push(`blob ${blob.digest}: ${problem}`);
    });
  });
  return { backups: backups.length, ...totals, problems };
}

/** Returns the path of a copy of the list of blobs, if that is undamaged. */
async function verifyParts(
  target: BackupTarget,
  { id, parts, blobs }: Manifest,
  directory: string,
  problems: string[],
): Promise<string | undefined> {
  let list: string | undefined;
  for (const part of parts) {
    const path = part.name === blobs.part ? join(directory, id) : undefined;
    const problem = await verifyPart(target, id, part, path);
    if (problem !== undefined) problems.push(`backup ${id}: ${part.name} ${problem}`);
    else list ??= path;
  }
  return list;
}

/** Reads a part and returns what is wrong. Copies it to `path`, if that is given. */
async function verifyPart(
  target: BackupTarget,
  id: string,
  part: Part,
  path: string | undefined,
): Promise<string | undefined> {
  try {
    const source = readPart(target, id, part);
    if (path !== undefined) await pipeline(Readable.from(source), createWriteStream(path, { mode: 0o600 }));
    else for await (const _ of source);
    return undefined;
  } catch (error) {
    if (error instanceof DamagedPartError) return error.problem;
    throw error;
  }
}

export class DamagedPartError extends Error {
  override readonly name = 'DamagedPartError';
  /** What is wrong, without the name of the part. */
  readonly problem: string;

  constructor(message: string, problem = message) {
    super(message);
    this.problem = problem;
  }
}

/** Reads a part as it is stored. Throws a DamagedPartError if it is missing, or at its end if its checksum differs. */
export async function* readPart(target: BackupTarget, id: string, part: Part): AsyncGenerator<Uint8Array> {
  const damaged = (problem: string): DamagedPartError =>
    new DamagedPartError(`${part.name} of the backup ${id} ${problem}: use another backup`, problem);
  try {
    yield* measured(target.read(partKey(id, part.name)), ({ size, sha256 }) => {
      if (size !== part.size) throw damaged(`has ${size} bytes instead of ${part.size}`);
      if (sha256 !== part.sha256) throw damaged('does not match its checksum');
    });
  } catch (error) {
    throw error instanceof MissingFileError ? damaged('is missing') : error;
  }
}

async function verifyBlob(
  target: BackupTarget,
  { digest, size, stored }: ListedBlob & { readonly stored: number | undefined },
  onBytes: (count: number) => void,
): Promise<string | undefined> {
  if (stored === undefined) return 'is missing';
  if (stored !== size) return `has ${stored} bytes instead of ${size}`;
  const { algorithm, hex } = parseDigest(digest);
  const hash = createHash(algorithm);
  try {
    for await (const chunk of target.read(blobKey(digest))) {
      hash.update(chunk);
      onBytes(chunk.length);
    }
  } catch (error) {
    if (error instanceof MissingFileError) return 'is missing';
    throw error;
  }
  return hash.digest('hex') === hex ? undefined : 'does not match its digest';
}

/** Passes a temporary directory for the lists of blobs: they are read several times, and all of them at once. */
export async function withSpool<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'wharf-backup-'));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Copies the list of blobs of a backup to a local file and returns its path. */
export async function spoolList(
  target: BackupTarget,
  { id, parts, blobs }: Manifest,
  directory: string,
): Promise<string> {
  const part = parts.find(({ name }) => name === blobs.part);
  if (!part) throw new DamagedPartError(`the manifest of the backup ${id} does not name its list of blobs`);
  const path = join(directory, id);
  const problem = await verifyPart(target, id, part, path);
  if (problem !== undefined) throw new DamagedPartError(`the list of blobs of the backup ${id} ${problem}`);
  return path;
}

export const readSpooledList = (path: string): AsyncGenerator<ListedBlob> =>
  parseBlobList(decompress(createReadStream(path)));
