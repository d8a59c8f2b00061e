import type { Condition } from './timeline.ts';
import { merge, type Vulnerability } from './vulnerability.ts';

/** A vulnerability that an image had at first and has no longer, and from which condition on it was gone for good. */
export interface Resolved {
  readonly vulnerability: Vulnerability;
  /** The index of that condition. */
  readonly since: number;
}

/**
 * Compares the first condition of a tag with its last. Where the image of either was never scanned nothing can be said;
 * and what only a scanner says that has not seen both is no difference between them.
 */
export function resolvedIn(conditions: readonly (Condition | undefined)[]): Resolved[] {
  const [first, last] = [conditions[0], conditions.at(-1)];
  if (!first || !last || first === last) return [];
  const scanners = new Set(last.reports.map(({ scanner }) => scanner));
  const comparable = first.reports.filter(({ scanner }) => scanners.has(scanner));
  const known = stretchesOf(conditions);
  return merge(comparable.flatMap(({ vulnerabilities }) => vulnerabilities)).flatMap((vulnerability) => {
    const had = known.findLastIndex(({ names }) => vulnerability.names.some((name) => names.has(name)));
    const next = known[had + 1];
    return next ? [{ vulnerability, since: next.since }] : [];
  });
}

interface Stretch {
  readonly condition: Condition;
  /** The index of the condition that it begins with. */
  readonly since: number;
  /** Of all vulnerabilities, each by all its names. */
  readonly names: ReadonlySet<string>;
}

/** The known conditions, with those that follow each other unchanged as one. */
function stretchesOf(conditions: readonly (Condition | undefined)[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (const [since, condition] of conditions.entries()) {
    if (!condition || condition === stretches.at(-1)?.condition) continue;
    const names = condition.reports.flatMap(({ vulnerabilities }) => vulnerabilities.flatMap((one) => one.names));
    stretches.push({ condition, since, names: new Set(names) });
  }
  return stretches;
}
