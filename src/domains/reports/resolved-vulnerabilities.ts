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
export function findResolved(snapshots: readonly (TagSnapshot | undefined)[]): ResolvedVulnerability[] {
  const [first, last] = [snapshots[0], snapshots.at(-1)];
  if (!first || !last || first === last) return [];
  const scanners = new Set(last.reports.map(({ scanner }) => scanner));
  const comparable = first.reports.filter(({ scanner }) => scanners.has(scanner));
  const changes = distinctSnapshots(snapshots);
  return mergeVulnerabilities(comparable.flatMap(({ vulnerabilities }) => vulnerabilities)).flatMap((vulnerability) => {
    const lastAffected = changes.findLastIndex(({ names }) => vulnerability.names.some((name) => names.has(name)));
    const next = changes[lastAffected + 1];
    return next ? [{ vulnerability, since: next.since }] : [];
  });
}

interface DistinctSnapshot {
  readonly snapshot: TagSnapshot;
  /** The index of the first of the equal snapshots. */
  readonly since: number;
  /** All names of all vulnerabilities. */
  readonly names: ReadonlySet<string>;
}

/** The snapshots without missing ones and without repetitions of the previous one. */
function distinctSnapshots(snapshots: readonly (TagSnapshot | undefined)[]): DistinctSnapshot[] {
  const distinct: DistinctSnapshot[] = [];
  for (const [since, snapshot] of snapshots.entries()) {
    if (!snapshot || snapshot === distinct.at(-1)?.snapshot) continue;
    const names = snapshot.reports.flatMap(({ vulnerabilities }) => vulnerabilities.flatMap((each) => each.names));
    distinct.push({ snapshot, since, names: new Set(names) });
  }
  return distinct;
}
