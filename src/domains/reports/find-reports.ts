import { invalid } from '../../base/errors.ts';
import type { Report } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { ReadContext } from '../../resource/operation.ts';
import { findAll } from '../../resource/read.ts';
import { findTagged } from '../registry/manifests/manifests.ts';
import {
  findingsIn,
  type ReportRow,
  rawReport,
  reportsOfDigest,
  reportsOfImages,
  reportsOfRepo,
  type Wanted,
} from './report-rows.ts';
import { reports } from './reports.ts';

/** Which reports; what is left out does not matter. */
export interface ReportQuery extends Wanted {
  readonly repo?: string;
  readonly digest?: string;
  /** Of the image that the tag points to now. */
  readonly tag?: string;
}

/** They come with all their findings, and each of those takes a kilobyte. */
const MAX_REPORTS = 200;
const MAX_FINDINGS = 100_000;

/** Reports with their findings, as far as they are within reach, the newest first. Too many are refused, never cut. */
export async function findReports(ctx: ReadContext, query: ReportQuery): Promise<Report[]> {
  const rows = await findRows(ctx, query);
  if (rows.length > MAX_REPORTS) {
    throw invalid('created_since', `more than ${MAX_REPORTS} reports fit; narrow it, or ask for one digest or tag`);
  }
  return withFindings(ctx, rows);
}

/** The newest report on an image of a repo. */
export async function newestReport(ctx: ReadContext, repo: string, digest: string): Promise<Report | undefined> {
  const [newest] = await findRows(ctx, { repo, digest });
  return newest && (await withFindings(ctx, [newest]))[0];
}

/** The newest report that fits, or the one of that very time, as it came in. */
export async function findRawReport(
  ctx: ReadContext,
  { time, ...query }: ReportQuery & { readonly time: number | undefined },
): Promise<{ readonly report: Report; readonly raw: string } | undefined> {
  const [row] = await findRows(ctx, time === undefined ? query : { ...query, since: time, until: time });
  const [stored] = row ? await findAll(ctx.db, reports, [row.uid]) : [];
  const raw = row && (await rawReport(ctx.db, row.uid));
  return stored && raw !== undefined ? { report: stored.message as Report, raw } : undefined;
}

const findRows = (ctx: ReadContext, query: ReportQuery): Promise<ReportRow[]> =>
  query.repo ? rowsInRepo(ctx, query.repo, query) : rowsAnywhere(ctx, query);

async function rowsInRepo(
  { db, caller, method }: ReadContext,
  repo: string,
  { digest, tag, ...wanted }: ReportQuery,
): Promise<ReportRow[]> {
  if (!caller.can(method.capabilities, repo)) return [];
  if (!digest && !tag) return reportsOfRepo(db, repo, wanted, MAX_REPORTS + 1);
  const tagged = tag ? (await findTagged(db, repo, tag))?.digest : digest;
  if (tagged === undefined || (digest && digest !== tagged)) return [];
  const rows = (await reportsOfImages(db, repo, [tagged])).get(tagged) ?? [];
  return rows.filter((row) => isWanted(row, wanted)).reverse();
}

const isWanted = ({ scanned, scanner }: ReportRow, wanted: Wanted): boolean =>
  scanned >= (wanted.since ?? 0) &&
  scanned <= (wanted.until ?? Number.POSITIVE_INFINITY) &&
  (!wanted.scanner || wanted.scanner === scanner);

async function rowsAnywhere(
  { db, caller, method }: ReadContext,
  { digest, tag, ...wanted }: ReportQuery,
): Promise<ReportRow[]> {
  if (!digest || tag)
    throw invalid('repo_id', tag ? 'is required to find a tag' : 'is required, unless digest is given');
  return reportsOfDigest(db, digest, caller.reach(method.capabilities), wanted, MAX_REPORTS + 1);
}

async function withFindings({ db }: ReadContext, rows: readonly ReportRow[]): Promise<Report[]> {
  const uids = rows.map(({ uid }) => uid);
  const found = new Map((await findAll(db, reports, uids)).map(({ uid, message }) => [uid, message as Report]));
  const { count, byReport } = await findingsIn(db, uids, MAX_FINDINGS);
  if (count > MAX_FINDINGS) {
    throw invalid('created_since', `the reports that fit have more than ${MAX_FINDINGS} findings; narrow it`);
  }
  return uids.flatMap((uid) => {
    const report = found.get(uid);
    if (report) report.findings = byReport.get(uid) ?? [];
    return report ?? [];
  });
}
