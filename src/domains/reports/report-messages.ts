import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type FindingSchema,
  FixState,
  type Report,
  ReportSchema,
  ScannerName,
  Severity,
  SeverityCountsSchema,
} from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { ScanFinding, ScanReport, ScanSeverity } from '../../formats/scanners/scan-report.ts';
import type { Vulnerability } from './vulnerability.ts';

const SCANNERS = { grype: ScannerName.GRYPE, trivy: ScannerName.TRIVY } as const;

const SEVERITIES: Readonly<Record<ScanSeverity, Severity>> = {
  unknown: Severity.UNSPECIFIED,
  negligible: Severity.NEGLIGIBLE,
  low: Severity.LOW,
  medium: Severity.MEDIUM,
  high: Severity.HIGH,
  critical: Severity.CRITICAL,
};

const FIX_STATES: Readonly<Record<ScanFinding['fix']['state'], FixState>> = {
  unknown: FixState.UNSPECIFIED,
  fixed: FixState.FIXED,
  'not fixed': FixState.NOT_FIXED,
  'wont fix': FixState.WONT_FIX,
};

/** The report as lists return it: without findings. */
export function toReport(
  { scanner, scannerVersion, databaseTime, time }: ScanReport & { readonly time: number },
  vulnerabilities: readonly Vulnerability[],
  contentDigest: string,
): Report {
  const counts = create(SeverityCountsSchema);
  for (const { severity } of vulnerabilities) counts[severity]++;
  return create(ReportSchema, {
    scanner: {
      name: SCANNERS[scanner],
      version: scannerVersion,
      ...(databaseTime !== undefined && { databaseTime: timestampFromMs(databaseTime) }),
    },
    scanTime: timestampFromMs(time),
    counts,
    contentDigest,
  });
}

/** A report that has only findings. It is stored separately from the resource. */
export const toFindingsReport = ({ findings }: ScanReport): Report =>
  create(ReportSchema, { findings: findings.map(toFinding) });

// A cast, because the arrays of a ScanFinding are readonly and those of a message are not. Nothing modifies them later.
const toFinding = ({ severity, fix, ...finding }: ScanFinding) =>
  ({
    ...finding,
    severity: SEVERITIES[severity],
    fix: { state: FIX_STATES[fix.state], versions: fix.versions },
  }) as MessageInitShape<typeof FindingSchema>;
