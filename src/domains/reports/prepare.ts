import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { toBinary } from '@bufbuild/protobuf';
import { type Report, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { readCvss } from '../../formats/cvss.ts';
import { isGrype, readGrype } from '../../formats/grype.ts';
import { damaged, fieldsOf } from '../../formats/reading.ts';
import type { ScanFinding, ScanReport, ScanSeverity } from '../../formats/scan-report.ts';
import { isTrivy, readTrivy } from '../../formats/trivy.ts';
import { parseJson } from '../registry/manifests/json.ts';
import { findingsOf, reportOf } from './messages.ts';
import { toColumn, vulnerabilitiesIn } from './vulnerability.ts';

/** A report that was understood, made ready so that its transaction has little to do. */
export interface PreparedReport {
  /** All but which image it is about; without findings. */
  readonly message: Report;
  /** Digests of the image that the report itself names. */
  readonly digests: readonly string[];
  /** What the table of reports holds beside it. */
  readonly columns: {
    readonly vulnerabilities: string;
    readonly findings: Uint8Array;
    readonly raw: Uint8Array;
  };
}

/** The largest that scanners write are some ten megabytes; reading this much holds up everybody else for a moment. */
export const MAX_BYTES = 32 * 1024 * 1024;

/** Clocks differ, but not by more. A report from the future would be the newest for a long time. */
const MAX_AHEAD_MS = 24 * 60 * 60 * 1000;

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Takes the text of a report apart; throws a DamagedError that says what is wrong with it. */
export async function prepareReport(text: Uint8Array, now: number): Promise<PreparedReport> {
  const bytes = trimmed(text);
  const scan = withLevels(readScan(bytes));
  const { time = now } = scan;
  if (time > now + MAX_AHEAD_MS) {
    throw damaged('', `was made at ${new Date(time).toISOString()}, which is still to come`);
  }
  const vulnerabilities = vulnerabilitiesIn(scan.findings);
  const contentDigest = createHash('sha256').update(bytes).digest('hex');
  return {
    message: reportOf({ ...scan, time }, vulnerabilities, contentDigest),
    digests: scan.digests,
    columns: {
      vulnerabilities: toColumn(vulnerabilities),
      findings: await compress(toBinary(ReportSchema, findingsOf(scan))),
      raw: await compress(bytes),
    },
  };
}

/** Files end with a line break where lines of a file do not; it is the same report. */
function trimmed(bytes: Uint8Array): Uint8Array {
  const end = bytes.findLastIndex((byte) => byte > 0x20) + 1;
  return bytes.subarray(0, end);
}

/** The text of a report that may be packed by gzip; throws a DamagedError when it is too large. */
export async function unpackReport(content: Uint8Array): Promise<Uint8Array> {
  const tooLarge = damaged('', `must be at most ${MAX_BYTES / 1024 / 1024} MiB of text`);
  if (content[0] !== 0x1f || content[1] !== 0x8b) {
    if (content.length > MAX_BYTES) throw tooLarge;
    return content;
  }
  try {
    return await expand(content, { maxOutputLength: MAX_BYTES });
  } catch (error) {
    const isTooLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLarge ? tooLarge : damaged('', 'is damaged: it begins as gzip does, but is none');
  }
}

function readScan(bytes: Uint8Array): ScanReport {
  let json: unknown;
  try {
    json = parseJson(bytes);
  } catch (error) {
    throw damaged('', (error as Error).message);
  }
  const fields = fieldsOf(json, '');
  const read = isGrype(fields) ? readGrype : isTrivy(fields) ? readTrivy : undefined;
  if (!read) throw damaged('', 'must be a report of Grype or Trivy in JSON form');
  return read(json);
}

/** A severity that the scanner does not know follows from the ratings, if there are any. */
function withLevels(scan: ScanReport): ScanReport {
  const findings = scan.findings.map((finding) =>
    finding.severity === 'unknown' ? { ...finding, severity: levelOf(finding) } : finding,
  );
  return { ...scan, findings };
}

function levelOf({ cvss }: ScanFinding): ScanSeverity {
  const ratings = cvss.flatMap(({ vector }) => readCvss(vector) ?? []);
  // The newest way of rating counts, and of several ratings the gravest.
  const [best] = ratings.sort((a, b) => b.version - a.version || b.score - a.score);
  if (!best) return 'unknown';
  return best.level === 'none' ? 'negligible' : best.level;
}
