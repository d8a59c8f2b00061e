import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Transaction } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import type { ChildRow } from './content-size.ts';
import { type Descriptor, isForeignLayer, type Manifest } from './manifest.ts';

const FIND_BLOBS = `SELECT digest, size FROM blob_link WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;
const FIND_MANIFESTS = `SELECT digest, content_size, platforms FROM manifest
  WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;
const LINK = `INSERT INTO manifest_link (repo, manifest, target)
  VALUES ${batchPlaceholders(3, (target) => `($1, $2, ${target})`)} ON CONFLICT DO NOTHING`;
const FIND_LINKED_TO = 'SELECT manifest FROM manifest_link WHERE repo = $1 AND target = $2 LIMIT 1';

/**
 * The sizes of the blobs that a manifest refers to. Refuses a manifest whose blobs are not all in the repo. Locks the
 * links to the blobs, so that they still exist when the manifest is committed.
 */
export async function requireBlobs(
  tx: Transaction,
  repo: string,
  { config, layers }: Manifest,
): Promise<ReadonlyMap<string, number>> {
  const needed = digestsOf([...(config ? [config] : []), ...layers.filter((layer) => !isForeignLayer(layer))]);
  const found = new Map<string, number>();
  for (const some of parameterBatches(needed)) {
    const rows = await tx.forShare.all<{ digest: string; size: number }>(FIND_BLOBS, repo, ...some);
    for (const { digest, size } of rows) found.set(digest, size);
  }
  requireAll('blobs', needed, found);
  return found;
}

/** Requires the child manifests of an index in the same way, and returns their rows. */
export async function requireChildManifests(
  tx: Transaction,
  repo: string,
  { manifests }: Manifest,
): Promise<ReadonlyMap<string, ChildRow>> {
  const needed = digestsOf(manifests);
  const found = new Map<string, ChildRow>();
  for (const some of parameterBatches(needed)) {
    const rows = await tx.forShare.all<ChildRow>(FIND_MANIFESTS, repo, ...some);
    for (const row of rows) found.set(row.digest, row);
  }
  requireAll('manifests', needed, found);
  return found;
}

/** Records the blobs and manifests that a manifest refers to, so that garbage collection keeps them. */
export async function insertManifestLinks(
  tx: Transaction,
  repo: string,
  manifest: string,
  targets: Iterable<string>,
): Promise<void> {
  for (const some of parameterBatches([...targets])) await tx.run(LINK, repo, manifest, ...some);
}

/** The digest of a manifest of the repo that refers to `target`, if there is one. */
export async function findManifestLinkedTo(db: Reader, repo: string, target: string): Promise<string | undefined> {
  return (await db.get<{ manifest: string }>(FIND_LINKED_TO, repo, target))?.manifest;
}

/** Sorted, so that concurrent pushes lock rows in the same order and cannot deadlock. */
const digestsOf = (descriptors: readonly Descriptor[]): string[] =>
  [...new Set(descriptors.map(({ digest }) => digest))].sort();

function requireAll(plural: string, needed: readonly string[], found: ReadonlyMap<string, unknown>): void {
  const digests = needed.filter((digest) => !found.has(digest));
  if (digests.length === 0) return;
  const listed = digests.slice(0, 3).join(', ') + (digests.length > 3 ? ` and ${digests.length - 3} more` : '');
  throw new RegistryError('MANIFEST_BLOB_UNKNOWN', `push these ${plural} to this repo first: ${listed}`, { digests });
}
