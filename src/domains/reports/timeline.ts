import type { Reader } from '../../store/store.ts';
import { type TagMove, tagMoves } from '../registry/tags/tag-history.ts';
import { type ReportRow, reportsOfImages, vulnerabilitiesOf } from './report-rows.ts';
import type { Vulnerability } from './vulnerability.ts';

/** What scanners knew of the image that a tag pointed to at some moment. */
export interface Condition {
  readonly digest: string;
  readonly reports: readonly { readonly scanner: number; readonly vulnerabilities: readonly Vulnerability[] }[];
}

/** A tag through time. */
export interface Timeline {
  readonly tag: string;
  /** One for each moment; none where the tag pointed nowhere, or to what nobody ever scanned. */
  readonly conditions: readonly (Condition | undefined)[];
}

interface Choice {
  readonly digest: string;
  readonly reports: readonly ReportRow[];
}

/** Follows tags of a repo through moments in ascending order. */
export async function timelinesOf(
  db: Reader,
  repo: string,
  tags: readonly string[],
  moments: readonly number[],
): Promise<Timeline[]> {
  const moves = await tagMoves(db, repo, tags, moments[0] ?? 0, moments.at(-1) ?? 0);
  const digests = new Set([...moves.values()].flat().flatMap(({ digest }) => digest ?? []));
  const reports = await reportsOfImages(db, repo, [...digests]);
  const choices = tags.map((tag) => choose(moves.get(tag) ?? [], reports, moments));

  const chosen = new Set(choices.flat().flatMap((choice) => choice?.reports.map(({ uid }) => uid) ?? []));
  const vulnerabilities = await vulnerabilitiesOf(db, [...chosen]);
  // Most days are like the day before, and tags often point to the same image.
  const conditions = new Map<string, Condition>();
  const conditionOf = ({ digest, reports }: Choice): Condition => {
    const key = [digest, ...reports.map(({ uid }) => uid)].join(' ');
    const found = conditions.get(key) ?? {
      digest,
      reports: reports.map(({ uid, scanner }) => ({ scanner, vulnerabilities: vulnerabilities.get(uid) ?? [] })),
    };
    conditions.set(key, found);
    return found;
  };
  return tags.map((tag, i) => ({ tag, conditions: (choices[i] ?? []).map((choice) => choice && conditionOf(choice)) }));
}

/** The image of a tag at each moment, with the reports that count then. */
function choose(
  moves: readonly TagMove[],
  reports: ReadonlyMap<string, readonly ReportRow[]>,
  moments: readonly number[],
): (Choice | undefined)[] {
  return moments.map((moment) => {
    const digest = moves.findLast(({ changed }) => changed <= moment)?.digest;
    const rows = digest === undefined ? undefined : reports.get(digest);
    return digest !== undefined && rows ? { digest, reports: reportsAt(rows, moment) } : undefined;
  });
}

/** Of each scanner, and of each image of an index, the newest report by then; else the first one that came. */
function reportsAt(rows: readonly ReportRow[], moment: number): ReportRow[] {
  const found = new Map<string, ReportRow>();
  for (const row of rows) {
    const key = `${row.digest} ${row.scanner}`;
    if (row.scanned <= moment || !found.has(key)) found.set(key, row);
  }
  return [...found.values()];
}
