import { invalid } from '../../base/errors.ts';
import { isUid } from '../../base/uid.ts';
import type { Report } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { ReadContext } from '../../resource/operation.ts';
import { findAll, findMessagesByUid } from '../../resource/read.ts';
import { findTagged } from '../registry/manifests/manifests.ts';
import {
  findReportsOfImages,
  listReportsOfDigest,
  listReportsOfRepo,
  type ReportFilter,
  type ReportRow,
  readFindings,
  readRawReport,
} from './report-rows.ts';
import { reports } from './reports.ts';

/** Which reports to find. An absent field matches all. */
export interface ReportQuery extends ReportFilter {
  readonly repo?: string;
  readonly digest?: string;
  /** Reports of the image that the tag points to now. */
  readonly tag?: string;
}

/** Reports are returned with all their findings, each of which takes about a kilobyte. */
const MAX_REPORTS = 200;
const MAX_FINDINGS = 100_000;

/** Reports within the caller's reach with their findings, newest first. Too many are refused instead of truncated. */
export async function findReports(ctx: ReadContext, query: ReportQuery): Promise<Report[]> {
  const rows = await findRows(ctx, query);
  if (rows.length > MAX_REPORTS) {
    throw invalid(
      'created_since',
      `more than ${MAX_REPORTS} reports match; use a later time, or request one digest or tag`,
    );
  }
  return withFindings(ctx, rows);
}

/** The newest report on an image of a repo. */
export async function findNewestReport(ctx: ReadContext, repo: string, digest: string): Promise<Report | undefined> {
  const [newest] = await findRows(ctx, { repo, digest });
  return newest && (await withFindings(ctx, [newest]))[0];
}

/** The newest report that matches, or the one with exactly that scan time, with its text as it was imported. */
export async function findRawReport(
  ctx: ReadContext,
  { time, ...query }: ReportQuery & { readonly time: number | undefined },
): Promise<{ readonly report: Report; readonly raw: string } | undefined> {
  const [row] = await findRows(ctx, time === undefined ? query : { ...query, since: time, until: time });
  const [stored] = row ? await findAll(ctx.db, reports, [row.uid]) : [];
  const raw = row && (await readRawReport(ctx.db, row.uid));
  return stored && raw !== undefined ? { report: stored.message, raw } : undefined;
}

const findRows = (ctx: ReadContext, query: ReportQuery): Promise<ReportRow[]> =>
  query.repo ? findRowsInRepo(ctx, query.repo, query) : findRowsOfDigest(ctx, query);

async function findRowsInRepo(
  { db, caller, method }: ReadContext,
  repo: string,
  { digest, tag, ...filter }: ReportQuery,
): Promise<ReportRow[]> {
  if (!isUid(repo) || !caller.can(method.capabilities, repo)) return [];
  if (!digest && !tag) return listReportsOfRepo(db, repo, filter, MAX_REPORTS + 1);
  const image = tag ? (await findTagged(db, repo, tag))?.digest : digest;
  if (image === undefined || (digest && digest !== image)) return [];
  const rows = (await findReportsOfImages(db, repo, [image])).get(image) ?? [];
  return rows.filter((row) => matchesFilter(row, filter)).reverse();
}

const matchesFilter = ({ scanned, scanner }: ReportRow, filter: ReportFilter): boolean =>
  scanned >= (filter.since ?? 0) &&
  scanned <= (filter.until ?? Number.POSITIVE_INFINITY) &&
  (!filter.scanner || filter.scanner === scanner);

async function findRowsOfDigest(
  { db, caller, method }: ReadContext,
  { digest, tag, ...filter }: ReportQuery,
): Promise<ReportRow[]> {
  if (!digest || tag) throw invalid('repo_id', tag ? 'is required with tag' : 'is required unless digest is set');
  return listReportsOfDigest(db, digest, caller.reach(method.capabilities), filter, MAX_REPORTS + 1);
}

async function withFindings({ db }: ReadContext, rows: readonly ReportRow[]): Promise<Report[]> {
  const uids = rows.map(({ uid }) => uid);
  const found = await findMessagesByUid(db, reports, uids);
  const { count, byReport } = await readFindings(db, uids, MAX_FINDINGS);
  if (count > MAX_FINDINGS) {
    throw invalid('created_since', `the reports that match have more than ${MAX_FINDINGS} findings; use a later time`);
  }
  return uids.flatMap((uid) => {
    const report = found.get(uid);
    if (report) report.findings = byReport.get(uid) ?? [];
    return report ?? [];
  });
}
