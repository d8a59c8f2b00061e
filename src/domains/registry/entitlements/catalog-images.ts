import { precondition } from '../../../base/errors.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { CatalogTier, Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { findByValue } from '../../../resource/list/find-by-name.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { repos } from '../repos/repos.ts';

const MAX_IMAGES = 10_000;

/** The repos that have one of the tiers and that the caller may list. */
export async function findCatalogImages(
  { db, caller }: ReadContext,
  group: string,
  tiers: readonly CatalogTier[],
): Promise<Repo[]> {
  if (tiers.length === 0) return [];
  const filter = { field: 'catalog_tier', values: tiers.map(String) };
  const uids = await findByValue(db, repos, caller.reach([Capability.CAP_REPO_LIST]), filter, MAX_IMAGES + 1);
  if (uids.length > MAX_IMAGES) {
    const description = `the catalog has more than ${MAX_IMAGES} images in these tiers; list the repos with /registry/v2/repos`;
    throw precondition('LIST_TOO_LONG', group, description);
  }
  return (await findAll(db, repos, uids)).map(({ message }) => message);
}
