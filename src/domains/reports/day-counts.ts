import { invalid } from '../../base/errors.ts';
import type { ReadContext } from '../../resource/operation.ts';
import { imageSizes } from '../registry/images/image-sizes.ts';
import { endOf, type PeriodRequest, periodOf } from './days.ts';
import { findTags, type RepoTags } from './tag-references.ts';
import { type Condition, timelinesOf } from './timeline.ts';
import { merge, type Vulnerability } from './vulnerability.ts';

/** What a tag had on one day. */
export interface DayCount {
  /** As it was asked for. */
  readonly repo: string;
  readonly tag: string;
  /** When the day begins. */
  readonly date: number;
  /** Of the image, in bytes; 0 when it is gone. */
  readonly size: number;
  readonly vulnerabilities: readonly Vulnerability[];
}

/** Each holds the ids of all its vulnerabilities. */
const MAX_COUNTS = 2000;

/**
 * The vulnerabilities of tags, day by day, as the day ended; days on which nothing is known are left out. `cumulative`:
 * everything that the tag has had since the first day.
 */
export async function dayCounts(
  ctx: ReadContext,
  asked: readonly RepoTags[],
  period: PeriodRequest,
  cumulative: boolean,
): Promise<DayCount[]> {
  const { days } = periodOf(period, ctx.now);
  const found = await findTags(ctx, asked);
  const tags = found.reduce((sum, { names }) => sum + names.length, 0);
  if (tags * days.length > MAX_COUNTS) {
    throw invalid(
      period.fields.to,
      `${tags} tags on ${days.length} days are more than ${MAX_COUNTS}; ask for less at once`,
    );
  }

  const counts: DayCount[] = [];
  for (const { asked: name, repo, names } of found) {
    const timelines = await timelinesOf(ctx.db, repo, names, days.map(endOf));
    const digests = new Set(timelines.flatMap(({ conditions }) => conditions.flatMap((one) => one?.digest ?? [])));
    const sizes = await imageSizes(ctx.db, repo, [...digests]);
    for (const { tag, conditions } of timelines) {
      for (const [i, { condition, vulnerabilities }] of told(conditions, cumulative)) {
        const size = sizes.get(condition.digest) ?? 0;
        counts.push({ repo: name, tag, date: days[i] ?? 0, size, vulnerabilities });
      }
    }
  }
  return counts;
}

interface Told {
  readonly condition: Condition;
  readonly vulnerabilities: readonly Vulnerability[];
}

/** What is known on each day, worked out only where it differs from the day before. */
function told(conditions: readonly (Condition | undefined)[], cumulative: boolean): [number, Told][] {
  const days: [number, Told][] = [];
  let last: Told | undefined;
  for (const [i, condition] of conditions.entries()) {
    if (!condition) continue;
    if (condition !== last?.condition) {
      const before: readonly Vulnerability[] = cumulative && last ? last.vulnerabilities : [];
      const now = condition.reports.flatMap(({ vulnerabilities }) => vulnerabilities);
      last = { condition, vulnerabilities: merge([...before, ...now]) };
    }
    days.push([i, last]);
  }
  return days;
}
