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
import type { ScanFinding, ScanReport, ScanSeverity } from '../../formats/scan-report.ts';
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

const STATES: Readonly<Record<ScanFinding['fix']['state'], FixState>> = {
  unknown: FixState.UNSPECIFIED,
  fixed: FixState.FIXED,
  'not fixed': FixState.NOT_FIXED,
  'wont fix': FixState.WONT_FIX,
};

/** A report as lists show it. */
export function reportOf(
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

/** A report with nothing but its findings, as they are stored. */
export const findingsOf = ({ findings }: ScanReport): Report =>
  create(ReportSchema, { findings: findings.map(findingOf) });

// Messages may be written to, what was read from a report may not; the message gets it as its own.
const findingOf = ({ severity, fix, ...finding }: ScanFinding) =>
  ({
    ...finding,
    severity: SEVERITIES[severity],
    fix: { state: STATES[fix.state], versions: fix.versions },
  }) as MessageInitShape<typeof FindingSchema>;
