import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { fromBinary } from '@bufbuild/protobuf';
import { rangeBelow } from '../../base/uid.ts';
import { type Finding, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row } from '../../store/store.ts';
import { fromColumn, type Vulnerability } from './vulnerability.ts';

/** A report without what is large about it. */
export interface ReportRow extends Row {
  readonly uid: string;
  readonly digest: string;
  readonly scanner: number;
  /** When, in milliseconds. */
  readonly scanned: number;
}

const COLUMNS = 'r.uid, r.digest, r.scanner, r.scanned';
// What does not fit is left out before rows are counted; else it could take the place of what does.
const FITTING = 'r.scanned >= $2 AND r.scanned <= $3 AND ($4 = 0 OR r.scanner = $4)';
const OF_REPO = `SELECT ${COLUMNS} FROM vulnerability_report r
  WHERE r.repo = $1 AND ${FITTING} ORDER BY r.scanned DESC, r.uid LIMIT $5`;
const OF_DIGEST = `SELECT ${COLUMNS} FROM vulnerability_report r
  WHERE r.digest = $1 AND ${FITTING} AND r.uid > $6 AND r.uid < $7
  ORDER BY r.scanned DESC, r.uid LIMIT $5`;
const OF_IMAGES = `SELECT r.digest AS image, ${COLUMNS} FROM vulnerability_report r
  WHERE r.repo = $1 AND r.digest IN (${batchPlaceholders(2)})`;
const OF_CHILDREN = `SELECT l.manifest AS image, ${COLUMNS} FROM manifest_link l
  JOIN vulnerability_report r ON r.repo = l.repo AND r.digest = l.target
  WHERE l.repo = $1 AND l.manifest IN (${batchPlaceholders(2)})`;
const FINDINGS = `SELECT uid, findings FROM vulnerability_report WHERE uid IN (${batchPlaceholders(1)})`;
const VULNERABILITIES = `SELECT uid, vulnerabilities FROM vulnerability_report WHERE uid IN (${batchPlaceholders(1)})`;
const RAW = 'SELECT raw FROM vulnerability_report WHERE uid = $1';

/** Of when and by whom reports are to be; what is left out does not matter. */
export interface Wanted {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly scanner?: number | undefined;
}

const bounds = ({ since = 0, until = Number.MAX_SAFE_INTEGER, scanner = 0 }: Wanted): number[] => [
  since,
  until,
  scanner,
];

/** The reports of a repo that fit, the newest first. */
export const reportsOfRepo = async (db: Reader, repo: string, wanted: Wanted, limit: number): Promise<ReportRow[]> =>
  db.all<ReportRow>(OF_REPO, repo, ...bounds(wanted), limit);

/** The same of an image in whatever repos below these groups. */
export async function reportsOfDigest(
  db: Reader,
  digest: string,
  groups: readonly string[],
  wanted: Wanted,
  limit: number,
): Promise<ReportRow[]> {
  const found: ReportRow[] = [];
  for (const group of groups) {
    found.push(...(await db.all<ReportRow>(OF_DIGEST, digest, ...bounds(wanted), limit, ...rangeBelow(group))));
  }
  return found.sort((a, b) => b.scanned - a.scanned || (a.uid < b.uid ? -1 : 1));
}

/**
 * The reports of images in a repo, by the digests that were asked for, in the order of their times. Scanners look at one
 * platform at a time, so what an index itself has no report of, its images may have.
 */
export async function reportsOfImages(
  db: Reader,
  repo: string,
  digests: readonly string[],
): Promise<ReadonlyMap<string, readonly ReportRow[]>> {
  const own = await rowsOf(db, OF_IMAGES, repo, digests);
  const rest = digests.filter((digest) => !own.has(digest));
  return new Map([...own, ...(await rowsOf(db, OF_CHILDREN, repo, rest))]);
}

async function rowsOf(
  db: Reader,
  statement: string,
  repo: string,
  digests: readonly string[],
): Promise<Map<string, ReportRow[]>> {
  const found: (ReportRow & { readonly image: string })[] = [];
  for (const some of parameterBatches(digests)) {
    // One by one: years of scans are more than fit on the stack as arguments.
    for (const row of await db.all<ReportRow & { readonly image: string }>(statement, repo, ...some)) found.push(row);
  }
  found.sort((a, b) => a.scanned - b.scanned || (a.uid < b.uid ? -1 : 1));
  return Map.groupBy(found, ({ image }) => image);
}

const expand = promisify(gunzip);

/** What reports found, by the uids of the reports. It ends with the report that makes it more than `most`. */
export async function findingsIn(
  db: Reader,
  uids: readonly string[],
  most = Number.POSITIVE_INFINITY,
): Promise<{ readonly count: number; readonly byReport: ReadonlyMap<string, Finding[]> }> {
  const byReport = new Map<string, Finding[]>();
  let count = 0;
  for (const some of parameterBatches(uids)) {
    for (const { uid, findings } of await db.all<{ uid: string; findings: Uint8Array }>(FINDINGS, ...some)) {
      const report = fromBinary(ReportSchema, await expand(findings));
      byReport.set(uid, report.findings);
      count += report.findings.length;
      if (count > most) return { count, byReport };
    }
  }
  return { count, byReport };
}

/** The vulnerabilities in reports, by the uids of the reports. */
export async function vulnerabilitiesOf(
  db: Reader,
  uids: readonly string[],
): Promise<ReadonlyMap<string, Vulnerability[]>> {
  const found = new Map<string, Vulnerability[]>();
  for (const some of parameterBatches(uids)) {
    const rows = await db.all<{ uid: string; vulnerabilities: string }>(VULNERABILITIES, ...some);
    for (const { uid, vulnerabilities } of rows) found.set(uid, fromColumn(vulnerabilities));
  }
  return found;
}

/** A report as it came in. */
export async function rawReport(db: Reader, uid: string): Promise<string | undefined> {
  const row = await db.get<{ raw: Uint8Array }>(RAW, uid);
  return row && (await expand(row.raw)).toString('utf8');
}
