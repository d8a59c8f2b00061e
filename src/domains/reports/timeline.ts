import type { Reader } from '../../store/store.ts';
import { findTagMoves, type TagMove } from '../registry/tags/tag-history.ts';
import { findReportsOfImages, type ReportRow, readVulnerabilities } from './report-rows.ts';
import type { Vulnerability } from './vulnerability.ts';

/** The image that a tag pointed to at one time, and the vulnerabilities that were reported for it. */
export interface TagSnapshot {
  readonly digest: string;
  readonly reports: readonly { readonly scanner: number; readonly vulnerabilities: readonly Vulnerability[] }[];
}

export interface TagTimeline {
  readonly tag: string;
  /** One for each time; undefined where the tag did not exist or its image has no report. */
  readonly snapshots: readonly (TagSnapshot | undefined)[];
}

interface SnapshotRows {
  readonly digest: string;
  readonly reports: readonly ReportRow[];
}

/** Reads snapshots of tags at the given times, which must be in ascending order. */
export async function readTimelines(
  db: Reader,
  repo: string,
  tags: readonly string[],
  times: readonly number[],
): Promise<TagTimeline[]> {
  const moves = await findTagMoves(db, repo, tags, times[0] ?? 0, times.at(-1) ?? 0);
  const digests = new Set([...moves.values()].flat().flatMap(({ digest }) => digest ?? []));
  const reports = await findReportsOfImages(db, repo, [...digests]);
  const rowsByTag = tags.map((tag) => snapshotRows(moves.get(tag) ?? [], reports, times));

  const uids = new Set(rowsByTag.flat().flatMap((rows) => rows?.reports.map(({ uid }) => uid) ?? []));
  const vulnerabilities = await readVulnerabilities(db, [...uids]);
  // Equal snapshots are one object: most days equal the day before, and several tags often point to the same image.
  const snapshots = new Map<string, TagSnapshot>();
  const snapshotOf = ({ digest, reports }: SnapshotRows): TagSnapshot => {
    const key = [digest, ...reports.map(({ uid }) => uid)].join(' ');
    const snapshot = snapshots.get(key) ?? {
      digest,
      reports: reports.map(({ uid, scanner }) => ({ scanner, vulnerabilities: vulnerabilities.get(uid) ?? [] })),
    };
    snapshots.set(key, snapshot);
    return snapshot;
  };
  return tags.map((tag, i) => ({ tag, snapshots: (rowsByTag[i] ?? []).map((rows) => rows && snapshotOf(rows)) }));
}

/** The image of a tag at each time, with the reports that were current then. */
function snapshotRows(
  moves: readonly TagMove[],
  reports: ReadonlyMap<string, readonly ReportRow[]>,
  times: readonly number[],
): (SnapshotRows | undefined)[] {
  return times.map((time) => {
    const digest = moves.findLast(({ changed }) => changed <= time)?.digest;
    const rows = digest === undefined ? undefined : reports.get(digest);
    return digest !== undefined && rows ? { digest, reports: reportsAt(rows, time) } : undefined;
  });
}

/** For each scanner and each image of an index, the newest report at that time, or the first one if all are later. */
function reportsAt(rows: readonly ReportRow[], time: number): ReportRow[] {
  const found = new Map<string, ReportRow>();
  for (const row of rows) {
    const key = `${row.digest} ${row.scanner}`;
    if (row.scanned <= time || !found.has(key)) found.set(key, row);
  }
  return [...found.values()];
}
