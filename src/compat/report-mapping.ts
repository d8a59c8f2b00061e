import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  Vulnerability_Severity as Level,
  type Scanner_Name,
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
  VulnerabilityRecord_Severity as MatchLevel,
  type VulnReport as MatchReport,
  VulnReportSchema as MatchReportSchema,
} from '../contract/gen/platform/tenant/v1/vuln.platform_pb.js';
import { type Finding, type Report, ScannerName } from '../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { DayCount } from '../domains/reports/day-counts.ts';

/** Scanners, severities and states of fixes have the same numbers in all three contracts. */
const same = <T extends number>(value: number | undefined): T => (value ?? 0) as T;

export const scannerOf = ({ scanner }: Report) => ({
  name: same<Scanner_Name>(scanner?.name),
  version: scanner?.version ?? '',
  ...(scanner?.databaseTime && { dbBuildTime: scanner.databaseTime }),
});

/** The report of `registry.Vulnerabilities`: each vulnerability once, with all the packages it is in. */
export const vulnReportOf = (report: Report): VulnReport =>
  create(VulnReportSchema, {
    digest: report.digest,
    scanner: scannerOf(report),
    ...(report.scanTime && { createdAt: report.scanTime }),
    vulnerabilities: [...Map.groupBy(report.findings, ({ id }) => id).values()].map(vulnerabilityOf),
  });

function vulnerabilityOf(findings: readonly Finding[]): Vulnerability {
  const [first] = findings as readonly [Finding, ...Finding[]];
  const all = (values: (finding: Finding) => readonly string[]): string[] => [...new Set(findings.flatMap(values))];
  return create(VulnerabilitySchema, {
    id: first.id,
    aliases: all(({ aliases }) => aliases),
    purls: all(({ package: pkg }) => (pkg?.purl ? [pkg.purl] : [])),
    description: first.description,
    severity: same<Level>(first.severity),
    cvss: first.cvss.map(({ score, version }) => ({ score, version })),
    fix: { versions: all(({ fix }) => fix?.versions ?? []), state: same<Vulnerability_Fix_State>(first.fix?.state) },
    relatedUrls: all(({ urls }) => urls),
    locations: all(({ package: pkg }) => pkg?.locations ?? []),
  });
}

const SCANNERS: Readonly<Record<ScannerName, string>> = {
  [ScannerName.UNSPECIFIED]: '',
  [ScannerName.GRYPE]: 'grype',
  [ScannerName.TRIVY]: 'trivy',
};

/** The report of `registry.Registry`: one match for each vulnerability and package. */
export const matchReportOf = (report: Report): MatchReport =>
  create(MatchReportSchema, {
    id: report.uid,
    vulnerabilityMatches: report.findings.map((finding) => ({
      vulnerability: {
        id: finding.id,
        displayId: finding.id,
        description: finding.description,
        severity: matchLevelOf(finding),
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
      fix: { versions: finding.fix?.versions ?? [], state: same<Fix_State>(finding.fix?.state) },
    })),
    scanner: { name: SCANNERS[report.scanner?.name ?? 0], version: report.scanner?.version ?? '' },
    ...(report.scanner?.databaseTime && { vulnerabilityDbLastBuildTime: report.scanner.databaseTime }),
    ...(report.scanTime && { reportGeneration: report.scanTime, lastSeen: report.scanTime }),
  });

/** This contract has no word for negligible. */
const matchLevelOf = ({ severity }: Finding): MatchLevel =>
  same<Level>(severity) === Level.NEGLIGIBLE ? MatchLevel.LOW : same<MatchLevel>(severity);

export function countReportOf({ repo, tag, date, size, vulnerabilities }: DayCount): VulnCountReport {
  const of = Map.groupBy(vulnerabilities, ({ severity }) => severity);
  const ids = (severity: DayCount['vulnerabilities'][number]['severity']) =>
    of.get(severity)?.map(({ id }) => id) ?? [];
  const lists = {
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
      { severity: Level.CRITICAL, count: lists.critCveIds.length },
      { severity: Level.HIGH, count: lists.highCveIds.length },
      { severity: Level.MEDIUM, count: lists.medCveIds.length },
      { severity: Level.LOW, count: lists.lowCveIds.length },
      { severity: Level.NEGLIGIBLE, count: lists.negligibleCveIds.length },
      { severity: Level.UNKNOWN, count: lists.unknownCveIds.length },
    ],
    sizeBytes: BigInt(size),
    cveIds: vulnerabilities.map(({ id }) => id),
    ...lists,
  });
}
