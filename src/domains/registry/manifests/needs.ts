import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Transaction } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import type { ChildRow } from './content.ts';
import { type Descriptor, isForeign, type Manifest } from './manifest.ts';

const BLOBS = `SELECT digest, size FROM blob_link WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;
const MANIFESTS = `SELECT digest, content_size, platforms FROM manifest
  WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;
const LINK = `INSERT INTO manifest_link (repo, manifest, target)
  VALUES ${batchPlaceholders(3, (target) => `($1, $2, ${target})`)} ON CONFLICT DO NOTHING`;

const NEEDING = 'SELECT manifest FROM manifest_link WHERE repo = $1 AND target = $2 LIMIT 1';

/** The sizes of the blobs that a manifest needs. All must be in the repo, and stay until the manifest is. */
export async function requireBlobs(
  tx: Transaction,
  repo: string,
  { config, layers }: Manifest,
): Promise<ReadonlyMap<string, number>> {
  const needed = digestsOf([...(config ? [config] : []), ...layers.filter((layer) => !isForeign(layer))]);
  const found = new Map<string, number>();
  for (const some of parameterBatches(needed)) {
    const rows = await tx.forShare.all<{ digest: string; size: number }>(BLOBS, repo, ...some);
    for (const { digest, size } of rows) found.set(digest, size);
  }
  requireAll('blobs', needed, found);
  return found;
}

/** The same for the children of an index. */
export async function requireManifests(
  tx: Transaction,
  repo: string,
  { manifests }: Manifest,
): Promise<ReadonlyMap<string, ChildRow>> {
  const needed = digestsOf(manifests);
  const found = new Map<string, ChildRow>();
  for (const some of parameterBatches(needed)) {
    const rows = await tx.forShare.all<ChildRow>(MANIFESTS, repo, ...some);
    for (const row of rows) found.set(row.digest, row);
  }
  requireAll('manifests', needed, found);
  return found;
}

/** Notes what a manifest needs, which is what garbage collection must leave alone. */
export async function linkNeeds(
  tx: Transaction,
  repo: string,
  manifest: string,
  targets: Iterable<string>,
): Promise<void> {
  for (const some of parameterBatches([...targets])) await tx.run(LINK, repo, manifest, ...some);
}

/** A manifest of the repo that cannot do without `target`, if there is one. */
export async function manifestNeeding(db: Reader, repo: string, target: string): Promise<string | undefined> {
  return (await db.get<{ manifest: string }>(NEEDING, repo, target))?.manifest;
}

/** In one order, so that two pushes never wait for each other. */
const digestsOf = (descriptors: readonly Descriptor[]): string[] =>
  [...new Set(descriptors.map(({ digest }) => digest))].sort();

function requireAll(what: string, needed: readonly string[], found: ReadonlyMap<string, unknown>): void {
  const digests = needed.filter((digest) => !found.has(digest));
  if (digests.length === 0) return;
  const named = digests.slice(0, 3).join(', ') + (digests.length > 3 ? ` and ${digests.length - 3} more` : '');
  throw new RegistryError('MANIFEST_BLOB_UNKNOWN', `push these ${what} to this repo first: ${named}`, { digests });
}
