import { mapInSlices, type Slices, startSlices } from '../../base/slices.ts';
import type { TagSnapshot } from './timeline.ts';
import { mergeVulnerabilities, type Vulnerability } from './vulnerability.ts';

/** A vulnerability that is in the first snapshot of a tag and not in the last. */
export interface ResolvedVulnerability {
  readonly vulnerability: Vulnerability;
  /** The index of the first snapshot from which on no snapshot has it. */
  readonly since: number;
}

/**
 * Compares the first snapshot of a tag with the last. Returns an empty list when either is missing. Ignores what only a
 * scanner found that did not scan the last snapshot, because that cannot be compared.
 */
export async function findResolved(snapshots: readonly (TagSnapshot | undefined)[]): Promise<ResolvedVulnerability[]> {
  const [first, last] = [snapshots[0], snapshots.at(-1)];
  if (!first || !last || first === last) return [];
  const scanners = new Set(last.reports.map(({ scanner }) => scanner));
  const comparable = first.reports.filter(({ scanner }) => scanners.has(scanner));
  const slices = startSlices();
  const changes = await distinctSnapshots(snapshots, slices);
  const affected = mergeVulnerabilities(comparable.flatMap(({ vulnerabilities }) => vulnerabilities));
  const resolved = await mapInSlices(
    affected,
    (vulnerability) => {
      const lastAffected = changes.findLastIndex(({ names }) => vulnerability.names.some((name) => names.has(name)));
      const next = changes[lastAffected + 1];
      return next ? [{ vulnerability, since: next.since }] : [];
    },
    slices,
  );
  return resolved.flat();
}

interface DistinctSnapshot {
  readonly snapshot: TagSnapshot;
  /** The index of the first of the equal snapshots. */
  readonly since: number;
  /** All names of all vulnerabilities. */
  readonly names: ReadonlySet<string>;
}

/** The snapshots without missing ones and without repetitions of the previous one. */
async function distinctSnapshots(
  snapshots: readonly (TagSnapshot | undefined)[],
  slices: Slices,
): Promise<DistinctSnapshot[]> {
  const distinct: DistinctSnapshot[] = [];
  for (const [since, snapshot] of snapshots.entries()) {
    if (!snapshot || snapshot === distinct.at(-1)?.snapshot) continue;
    if (slices.isOver()) await slices.next();
    const names = snapshot.reports.flatMap(({ vulnerabilities }) => vulnerabilities.flatMap((each) => each.names));
    distinct.push({ snapshot, since, names: new Set(names) });
  }
  return distinct;
}
