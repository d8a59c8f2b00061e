import { findListingIndexes, type IndexPhase } from '../../store/listing-indexes.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { findProgress, percentageOf } from './build-progress.ts';
import { missingParts } from './index-parts.ts';

/** The state of the listing index of a kind, for people. */
export interface IndexStatus {
  readonly kind: string;
  /** `not registered`: this version declares it differently, and no server of this version has started yet. */
  readonly state: IndexPhase | 'not registered';
  /** How many times its declaration has changed. */
  readonly generation: number;
  readonly percentage: number | undefined;
  /** Estimated from the rate so far; undefined if nothing is being built, or if there is no rate yet. */
  readonly secondsLeft: number | undefined;
}

export async function readIndexStatus(db: Reader, resources: readonly Resource[], now: number): Promise<IndexStatus[]> {
  const indexes = await findListingIndexes(db);
  const statuses: IndexStatus[] = [];
  for (const index of [...indexes.values()].sort((a, b) => (a.kind < b.kind ? -1 : 1))) {
    const { kind, phase, generation, building } = index;
    const resource = resources.find((each) => each.kind === kind);
    const missing = resource && missingParts(resource, index);
    const isRegistered = !missing || [...missing.parts].every((part) => building.has(part));
    if (phase === 'complete' || !isRegistered) {
      const state = isRegistered ? phase : 'not registered';
      statuses.push({ kind, state, generation, percentage: undefined, secondsLeft: undefined });
      continue;
    }
    const progress = await findProgress(db, kind);
    const { done = 0, total = 0, started = now } = progress ?? {};
    const perMs = done / Math.max(1, now - started);
    const secondsLeft = perMs > 0 ? Math.ceil((total - done) / perMs / 1000) : undefined;
    statuses.push({ kind, state: phase, generation, percentage: percentageOf(progress), secondsLeft });
  }
  return statuses;
}
