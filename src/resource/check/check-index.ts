import type { Reader, Store } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { checkExtraRows } from './check-extra-rows.ts';
import { checkLists } from './check-lists.ts';
import { checkResources } from './check-resources.ts';
import type { Report } from './difference.ts';
import { createListCounts } from './list-counts.ts';
import { createRepair } from './repair.ts';

export interface IndexCheckOptions {
  readonly report: Report;
  /** Mends what differs. */
  readonly isRepair: boolean;
  /** Checks and repairs the parts of the listing index that are being built, too. */
  readonly includeUnfinished?: boolean;
  /** Called with the number of resources that were checked since the last call. */
  readonly onProgress?: (resources: number) => void;
}

/**
 * Recomputes the listing index, unique keys and references of resources and compares them with the tables, in one snapshot,
 * so that concurrent writes are no differences. Repairs run outside of the snapshot.
 */
export async function checkIndex(
  store: Store,
  snapshot: Reader,
  resources: readonly Resource[],
  { report, isRepair, includeUnfinished = false, onProgress = () => {} }: IndexCheckOptions,
): Promise<void> {
  const listingIndexes = includeUnfinished ? undefined : store.reader.listingIndexes;
  const repair = isRepair
    ? createRepair(store, listingIndexes, includeUnfinished ? store.reader.listingIndexes : undefined)
    : undefined;
  const db: Reader = listingIndexes ? { ...snapshot, listingIndexes } : snapshot;
  const counts = await createListCounts(db);
  const kinds = new Map<string, Resource>();
  for (const resource of resources) {
    const rowCounts = await checkResources({ db, resource, report, counts, repair, onProgress });
    if (rowCounts.hasUndecodable) continue;
    kinds.set(resource.kind, resource);
    await checkExtraRows(db, resource, rowCounts, report, repair);
  }
  await checkLists({ db, kinds, counts, report, repair });
  await repair?.finish();
}
