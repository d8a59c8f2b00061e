import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { startSlices } from '../../base/slices.ts';
import { descendantRange, type Uid } from '../../base/uid.ts';
import { decodeInSlices } from '../../contract/binary-slices.ts';
import { type Finding, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row } from '../../store/store.ts';
import { decodeVulnerabilities, type Vulnerability } from './vulnerability.ts';

/** A report without its large columns. */
export interface ReportRow extends Row {
  readonly uid: Uid;
  readonly digest: string;
  readonly scanner: number;
  /** The scan time, in milliseconds. */
  readonly scanned: number;
}

const COLUMNS = 'r.uid, r.digest, r.scanner, r.scanned';
// The filter is part of the statement, so that LIMIT counts only rows that match it.
const MATCHES = 'r.scanned >= $2 AND r.scanned <= $3 AND ($4 = 0 OR r.scanner = $4)';
const OF_REPO = `SELECT ${COLUMNS} FROM vulnerability_report r
  WHERE r.repo = $1 AND ${MATCHES} ORDER BY r.scanned DESC, r.uid LIMIT $5`;
const OF_DIGEST = `SELECT ${COLUMNS} FROM vulnerability_report r
  WHERE r.digest = $1 AND ${MATCHES} AND r.uid > $6 AND r.uid < $7
  ORDER BY r.scanned DESC, r.uid LIMIT $5`;
const OF_IMAGES = `SELECT r.digest AS image, ${COLUMNS} FROM vulnerability_report r
  WHERE r.repo = $1 AND r.digest IN (${batchPlaceholders(2)})`;
const OF_CHILDREN = `SELECT l.manifest AS image, ${COLUMNS} FROM manifest_link l
  JOIN vulnerability_report r ON r.repo = l.repo AND r.digest = l.target
  WHERE l.repo = $1 AND l.manifest IN (${batchPlaceholders(2)})`;
const FINDINGS = `SELECT uid, findings FROM vulnerability_report WHERE uid IN (${batchPlaceholders(1)})`;
const VULNERABILITIES = `SELECT uid, vulnerabilities FROM vulnerability_report WHERE uid IN (${batchPlaceholders(1)})`;
const RAW = 'SELECT raw FROM vulnerability_report WHERE uid = $1';

/** Which reports to list. An absent field matches all. */
export interface ReportFilter {
  /** The earliest scan time. */
  readonly since?: number | undefined;
  /** The latest scan time. */
  readonly until?: number | undefined;
  readonly scanner?: number | undefined;
}

const filterParameters = ({ since = 0, until = Number.MAX_SAFE_INTEGER, scanner = 0 }: ReportFilter): number[] => [
  since,
  until,
  scanner,
];

/** The reports of a repo that match the filter, newest first. */
export const listReportsOfRepo = async (
  db: Reader,
  repo: string,
  filter: ReportFilter,
  limit: number,
): Promise<ReportRow[]> => db.all<ReportRow>(OF_REPO, repo, ...filterParameters(filter), limit);

/** The reports of an image in all repos below the groups that match the filter, newest first. */
export async function listReportsOfDigest(
  db: Reader,
  digest: string,
  groups: readonly Uid[],
  filter: ReportFilter,
  limit: number,
): Promise<ReportRow[]> {
  const found: ReportRow[] = [];
  for (const group of groups) {
    found.push(
      ...(await db.all<ReportRow>(OF_DIGEST, digest, ...filterParameters(filter), limit, ...descendantRange(group))),
    );
  }
  return found.sort((a, b) => b.scanned - a.scanned || (a.uid < b.uid ? -1 : 1));
}

/**
 * The reports of images in a repo, by digest, oldest first. An index without reports has those of its images, because
 * scanners scan one platform at a time.
 */
export async function findReportsOfImages(
  db: Reader,
  repo: string,
  digests: readonly string[],
): Promise<ReadonlyMap<string, readonly ReportRow[]>> {
  const direct = await findByImage(db, OF_IMAGES, repo, digests);
  const rest = digests.filter((digest) => !direct.has(digest));
  return new Map([...direct, ...(await findByImage(db, OF_CHILDREN, repo, rest))]);
}

async function findByImage(
  db: Reader,
  statement: string,
  repo: string,
  digests: readonly string[],
): Promise<Map<string, ReportRow[]>> {
  const found: (ReportRow & { readonly image: string })[] = [];
  for (const some of parameterBatches(digests)) {
    // Not push(...rows): years of scans would exceed the number of arguments that a call can have.
    for (const row of await db.all<ReportRow & { readonly image: string }>(statement, repo, ...some)) found.push(row);
  }
  found.sort((a, b) => a.scanned - b.scanned || (a.uid < b.uid ? -1 : 1));
  return Map.groupBy(found, ({ image }) => image);
}

const expand = promisify(gunzip);

/** The findings of reports, by uid. Stops after the report with which the number of findings exceeds `max`. */
export async function readFindings(
  db: Reader,
  uids: readonly string[],
  max = Number.POSITIVE_INFINITY,
): Promise<{ readonly count: number; readonly byReport: ReadonlyMap<string, Finding[]> }> {
  const byReport = new Map<string, Finding[]>();
  let count = 0;
  for (const some of parameterBatches(uids)) {
    for (const { uid, findings } of await db.all<{ uid: Uid; findings: Uint8Array }>(FINDINGS, ...some)) {
      const report = await decodeInSlices(ReportSchema, await expand(findings));
      byReport.set(uid, report.findings);
      count += report.findings.length;
      if (count > max) return { count, byReport };
    }
  }
  return { count, byReport };
}

/** The vulnerabilities of reports, by uid. */
export async function readVulnerabilities(
  db: Reader,
  uids: readonly string[],
): Promise<ReadonlyMap<string, Vulnerability[]>> {
  const found = new Map<string, Vulnerability[]>();
  const slices = startSlices();
  for (const some of parameterBatches(uids)) {
    const rows = await db.all<{ uid: Uid; vulnerabilities: string }>(VULNERABILITIES, ...some);
    for (const { uid, vulnerabilities } of rows) {
      if (slices.isOver()) await slices.next();
      found.set(uid, decodeVulnerabilities(vulnerabilities));
    }
  }
  return found;
}

/** The text of a report as it was imported. */
export async function readRawReport(db: Reader, uid: string): Promise<string | undefined> {
  const row = await db.get<{ raw: Uint8Array }>(RAW, uid);
  return row && (await expand(row.raw)).toString('utf8');
}
