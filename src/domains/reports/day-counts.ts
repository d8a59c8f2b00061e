import { invalid } from '../../base/errors.ts';
import { type Slices, startSlices } from '../../base/slices.ts';
import type { ReadContext } from '../../resource/operation.ts';
import { findImageSizes } from '../registry/images/image-sizes.ts';
import { findTags, type TagQuery } from './find-tags.ts';
import { endOfDay, type PeriodRequest, periodOf } from './period.ts';
import { readTimelines, type TagSnapshot } from './timeline.ts';
import { mergeVulnerabilities, type Vulnerability } from './vulnerability.ts';

/** The vulnerabilities of a tag on one day. */
export interface DayCount {
  /** The repo as the request names it. */
  readonly repo: string;
  readonly tag: string;
  /** The start of the day, in milliseconds. */
  readonly date: number;
  /** The size of the image in bytes; 0 when the image was deleted. */
  readonly size: number;
  readonly vulnerabilities: readonly Vulnerability[];
}

/** The most pairs of a tag and a day that a request can ask for. */
const MAX_COUNTS = 200_000;
const MAX_TAGS = 10_000;
/** Each count contains the ids of all its vulnerabilities, so their number limits the size of the response. */
const MAX_IDS = 500_000;
/** Timelines are read for some tags at a time, so that no step takes long. */
const COUNTS_PER_READ = 2000;

/**
 * The vulnerabilities of tags at the end of each day. Days without a report are left out. With `cumulative`, a day has
 * all vulnerabilities since the first day.
 */
export async function computeDayCounts(
  ctx: ReadContext,
  queries: readonly TagQuery[],
  period: PeriodRequest,
  cumulative: boolean,
): Promise<DayCount[]> {
  const { days } = periodOf(period, ctx.now);
  const found = await findTags(ctx, queries, MAX_TAGS);
  const tags = found.reduce((sum, { names }) => sum + names.length, 0);
  if (tags * days.length > MAX_COUNTS) {
    throw invalid(
      period.fields.to,
      `${tags} tags on ${days.length} days are more than ${MAX_COUNTS} counts; request fewer tags or days`,
    );
  }

  const counts: DayCount[] = [];
  const slices = startSlices();
  let ids = 0;
  const tagsPerRead = Math.max(1, Math.floor(COUNTS_PER_READ / days.length));
  const reads = found.flatMap(({ names, ...rest }) =>
    Array.from({ length: Math.ceil(names.length / tagsPerRead) }, (_, at) => ({
      ...rest,
      names: names.slice(at * tagsPerRead, (at + 1) * tagsPerRead),
    })),
  );
  for (const { requestedRepo, repo, names } of reads) {
    if (slices.isOver()) await slices.next();
    const timelines = await readTimelines(ctx.db, repo, names, days.map(endOfDay));
    const digests = new Set(timelines.flatMap(({ snapshots }) => snapshots.flatMap((each) => each?.digest ?? [])));
    const sizes = await findImageSizes(ctx.db, repo, [...digests]);
    for (const { tag, snapshots } of timelines) {
      for (const [i, { digest, vulnerabilities }] of await dailyVulnerabilities(snapshots, cumulative, slices)) {
        const size = sizes.get(digest) ?? 0;
        ids += vulnerabilities.length;
        if (ids > MAX_IDS) throw invalid(period.fields.to, TOO_MANY_IDS);
        counts.push({ repo: requestedRepo, tag, date: days[i] ?? 0, size, vulnerabilities });
      }
    }
  }
  return counts;
}

const TOO_MANY_IDS = `the counts contain more than ${MAX_IDS} ids of vulnerabilities; request fewer tags or days`;

interface DayVulnerabilities {
  readonly digest: string;
  readonly vulnerabilities: readonly Vulnerability[];
}

/** The vulnerabilities of each day with a snapshot, by index. Merged only when the snapshot differs from the last. */
async function dailyVulnerabilities(
  snapshots: readonly (TagSnapshot | undefined)[],
  cumulative: boolean,
  slices: Slices,
): Promise<[number, DayVulnerabilities][]> {
  const days: [number, DayVulnerabilities][] = [];
  let last: (DayVulnerabilities & { readonly snapshot: TagSnapshot }) | undefined;
  for (const [i, snapshot] of snapshots.entries()) {
    if (!snapshot) continue;
    if (snapshot !== last?.snapshot) {
      if (slices.isOver()) await slices.next();
      const before: readonly Vulnerability[] = cumulative && last ? last.vulnerabilities : [];
      const added = snapshot.reports.flatMap(({ vulnerabilities }) => vulnerabilities);
      const vulnerabilities = mergeVulnerabilities([...before, ...added]);
      last = { snapshot, digest: snapshot.digest, vulnerabilities };
    }
    days.push([i, last]);
  }
  return days;
}
