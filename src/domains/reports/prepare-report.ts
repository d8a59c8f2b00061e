import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { toBinary } from '@bufbuild/protobuf';
import { parseJson } from '../../base/parse-json.ts';
import { type Report, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { type CvssParser, loadCvssParser } from '../../formats/cvss.ts';
import { isGrype, readGrype } from '../../formats/scanners/grype.ts';
import type { ScanFinding, ScanReport, ScanSeverity } from '../../formats/scanners/scan-report.ts';
import { isTrivy, readTrivy } from '../../formats/scanners/trivy.ts';
import { malformed, requireObject } from '../../formats/strict-json.ts';
import { toFindingsReport, toReport } from './report-messages.ts';
import { encodeVulnerabilities, toVulnerabilities } from './vulnerability.ts';

/** A parsed report, encoded in the background and before the transaction begins. */
export interface PreparedReport {
  /** The report without its findings and without the digest of its image. */
  readonly message: Report;
  /** The digests of the image according to the report. */
  readonly digests: readonly string[];
  /** The values of the table vulnerability_report. */
  readonly columns: {
    readonly vulnerabilities: string;
    readonly findings: Uint8Array;
    readonly raw: Uint8Array;
  };
}

/** The largest reports of scanners have some ten megabytes. */
export const MAX_REPORT_BYTES = 32 * 1024 * 1024;

/** A report of the maximum size has about a million fields and list items. This many take some 200 MB when parsed. */
const MAX_VALUES = 2_000_000;

/** The clock skew that is accepted. A report with a time in the future would stay the newest for a long time. */
const MAX_CLOCK_SKEW_MS = 24 * 60 * 60 * 1000;

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Parses the text of a report. Throws a MalformedFieldError that says what is wrong with it. */
export async function prepareReport(text: Uint8Array, now: number): Promise<PreparedReport> {
  const bytes = withoutTrailingSpace(text);
  const scan = withCvssSeverities(parseScan(bytes), await loadCvssParser());
  const { time = now } = scan;
  if (time > now + MAX_CLOCK_SKEW_MS) {
    throw malformed(
      '',
      `has the scan time ${new Date(time).toISOString()}, which is in the future; check the clock of the scanner`,
    );
  }
  const vulnerabilities = toVulnerabilities(scan.findings);
  const contentDigest = createHash('sha256').update(bytes).digest('hex');
  return {
    message: toReport({ ...scan, time }, vulnerabilities, contentDigest),
    digests: scan.digests,
    columns: {
      vulnerabilities: encodeVulnerabilities(vulnerabilities),
      findings: await compress(toBinary(ReportSchema, toFindingsReport(scan))),
      raw: await compress(bytes),
    },
  };
}

/** A report has the same content digest with and without a line break at its end. */
function withoutTrailingSpace(bytes: Uint8Array): Uint8Array {
  const end = bytes.findLastIndex((byte) => byte > 0x20) + 1;
  return bytes.subarray(0, end);
}

/** Decompresses a report if it is gzip. Throws a MalformedFieldError when the text is too large. */
export async function unpackReport(content: Uint8Array): Promise<Uint8Array> {
  const tooLarge = malformed('', `must be at most ${MAX_REPORT_BYTES / 1024 / 1024} MiB of text`);
  if (content[0] !== 0x1f || content[1] !== 0x8b) {
    if (content.length > MAX_REPORT_BYTES) throw tooLarge;
    return content;
  }
  try {
    return await expand(content, { maxOutputLength: MAX_REPORT_BYTES });
  } catch (error) {
    const isTooLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLarge ? tooLarge : malformed('', 'is damaged: it begins like gzip data, but cannot be decompressed');
  }
}

function parseScan(bytes: Uint8Array): ScanReport {
  let json: unknown;
  try {
    json = parseJson(bytes, MAX_VALUES);
  } catch (error) {
    throw malformed('', (error as Error).message);
  }
  const fields = requireObject(json, '');
  const read = isGrype(fields) ? readGrype : isTrivy(fields) ? readTrivy : undefined;
  if (!read) throw malformed('', 'must be a report of Grype or Trivy in JSON form');
  return read(json);
}

/** Replaces unknown severities by those of the CVSS vectors, if there are any. */
function withCvssSeverities(scan: ScanReport, parseCvss: CvssParser): ScanReport {
  const findings = scan.findings.map((finding) =>
    finding.severity === 'unknown' ? { ...finding, severity: cvssSeverityOf(finding, parseCvss) } : finding,
  );
  return { ...scan, findings };
}

function cvssSeverityOf({ cvss }: ScanFinding, parseCvss: CvssParser): ScanSeverity {
  const ratings = cvss.flatMap(({ vector }) => parseCvss(vector) ?? []);
  // The highest score of the newest CVSS version counts.
  const [best] = ratings.sort((a, b) => b.version - a.version || b.score - a.score);
  if (!best) return 'unknown';
  return best.level === 'none' ? 'negligible' : best.level;
}
