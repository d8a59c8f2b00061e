import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { mapInSlices } from '../base/slices.ts';
import {
  type Scanner_Name,
  Vulnerability_Severity as Severity,
  type VulnCountReport,
  VulnCountReportSchema,
  type Vulnerability,
  type Vulnerability_Fix_State,
  VulnerabilitySchema,
  type VulnReport,
  VulnReportSchema,
} from '../contract/gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import {
  type Fix_State,
  type VulnReport as MatchReport,
  VulnReportSchema as MatchReportSchema,
  VulnerabilityRecord_Severity as MatchSeverity,
  VulnerabilityMatchSchema,
} from '../contract/gen/platform/tenant/v1/vuln.platform_pb.js';
import { type Finding, type Report, ScannerName } from '../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { DayCount } from '../domains/reports/day-counts.ts';

/** Scanners, severities and fix states have the same numbers in all three contracts. */
const sameNumber = <T extends number>(value: number | undefined): T => (value ?? 0) as T;

export const scannerOf = ({ scanner }: Report) => ({
  name: sameNumber<Scanner_Name>(scanner?.name),
  version: scanner?.version ?? '',
  ...(scanner?.databaseTime && { dbBuildTime: scanner.databaseTime }),
});

/** The report of `registry.Vulnerabilities`, which has each vulnerability once, with all affected packages. */
export const vulnReportOf = async (report: Report): Promise<VulnReport> =>
  create(VulnReportSchema, {
    digest: report.digest,
    scanner: scannerOf(report),
    ...(report.scanTime && { createdAt: report.scanTime }),
    vulnerabilities: await mapInSlices([...Map.groupBy(report.findings, ({ id }) => id).values()], vulnerabilityOf),
  });

function vulnerabilityOf(findings: readonly Finding[]): Vulnerability {
  const [first] = findings as readonly [Finding, ...Finding[]];
  const all = (values: (finding: Finding) => readonly string[]): string[] => [...new Set(findings.flatMap(values))];
  return create(VulnerabilitySchema, {
    id: first.id,
    aliases: all(({ aliases }) => aliases),
    purls: all(({ package: pkg }) => (pkg?.purl ? [pkg.purl] : [])),
    description: first.description,
    severity: sameNumber<Severity>(first.severity),
    cvss: first.cvss.map(({ score, version }) => ({ score, version })),
    fix: {
      versions: all(({ fix }) => fix?.versions ?? []),
      state: sameNumber<Vulnerability_Fix_State>(first.fix?.state),
    },
    relatedUrls: all(({ urls }) => urls),
    locations: all(({ package: pkg }) => pkg?.locations ?? []),
  });
}

const SCANNERS: Readonly<Record<ScannerName, string>> = {
  [ScannerName.UNSPECIFIED]: '',
  [ScannerName.GRYPE]: 'grype',
  [ScannerName.TRIVY]: 'trivy',
};

/** The report of `registry.Registry`, which has one match for each pair of vulnerability and package. */
export const matchReportOf = async (report: Report): Promise<MatchReport> =>
  create(MatchReportSchema, {
    id: report.uid,
    vulnerabilityMatches: await mapInSlices(report.findings, matchOf),
    scanner: { name: SCANNERS[report.scanner?.name ?? 0], version: report.scanner?.version ?? '' },
    ...(report.scanner?.databaseTime && { vulnerabilityDbLastBuildTime: report.scanner.databaseTime }),
    ...(report.scanTime && { reportGeneration: report.scanTime, lastSeen: report.scanTime }),
  });

const matchOf = (finding: Finding) =>
  create(VulnerabilityMatchSchema, {
    vulnerability: {
      id: finding.id,
      displayId: finding.id,
      description: finding.description,
      severity: matchSeverityOf(finding),
      source: finding.source,
      cvss: finding.cvss.map(({ score, version }) => ({ score, version })),
      relatedUrls: finding.urls,
      relatedVulnerabilities: finding.aliases.map((id) => ({ id })),
    },
    pkg: {
      name: finding.package?.name ?? '',
      version: finding.package?.version ?? '',
      purl: finding.package?.purl ?? '',
    },
    fix: { versions: finding.fix?.versions ?? [], state: sameNumber<Fix_State>(finding.fix?.state) },
  });

/** This contract does not define the severity `negligible`. */
const matchSeverityOf = ({ severity }: Finding): MatchSeverity =>
  sameNumber<Severity>(severity) === Severity.NEGLIGIBLE ? MatchSeverity.LOW : sameNumber<MatchSeverity>(severity);

export function countReportOf({ repo, tag, date, size, vulnerabilities }: DayCount): VulnCountReport {
  const bySeverity = Map.groupBy(vulnerabilities, ({ severity }) => severity);
  const ids = (severity: DayCount['vulnerabilities'][number]['severity']) =>
    bySeverity.get(severity)?.map(({ id }) => id) ?? [];
  const idsBySeverity = {
    lowCveIds: ids('low'),
    medCveIds: ids('medium'),
    highCveIds: ids('high'),
    critCveIds: ids('critical'),
    negligibleCveIds: ids('negligible'),
    unknownCveIds: ids('unknown'),
  };
  return create(VulnCountReportSchema, {
    repo,
    tag,
    date: timestampFromMs(date),
    vulnCounts: [
      { severity: Severity.CRITICAL, count: idsBySeverity.critCveIds.length },
      { severity: Severity.HIGH, count: idsBySeverity.highCveIds.length },
      { severity: Severity.MEDIUM, count: idsBySeverity.medCveIds.length },
      { severity: Severity.LOW, count: idsBySeverity.lowCveIds.length },
      { severity: Severity.NEGLIGIBLE, count: idsBySeverity.negligibleCveIds.length },
      { severity: Severity.UNKNOWN, count: idsBySeverity.unknownCveIds.length },
    ],
    sizeBytes: BigInt(size),
    cveIds: vulnerabilities.map(({ id }) => id),
    ...idsBySeverity,
  });
}
