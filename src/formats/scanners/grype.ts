import { child, children, decimalAt, idAt, type ReportNode, textAt, textsAt, timeAt, toNode } from './report-node.ts';
import { digestsIn, fixStateOf, MAX_FINDINGS, type ScanFinding, type ScanReport, severityOf } from './scan-report.ts';

/** Whether this is the output of `grype <image> -o json`, version 0.60 or later. */
export const isGrype = (fields: Readonly<Record<string, unknown>>): boolean =>
  'matches' in fields && 'descriptor' in fields;

export function readGrype(json: unknown): ScanReport {
  const report = toNode(json, '');
  const descriptor = child(report, 'descriptor');
  const target = targetOf(child(report, 'source'));
  const database = child(descriptor, 'db');
  return {
    scanner: 'grype',
    scannerVersion: textAt(descriptor, 'version'),
    // Since version 6 of the database schema, the build time is in `status`.
    databaseTime: timeAt(database, 'built') ?? timeAt(child(database, 'status'), 'built'),
    time: timeAt(descriptor, 'timestamp'),
    digests: target ? [...digestsIn(target, 'repoDigests'), textAt(target, 'manifestDigest')].filter(Boolean) : [],
    findings: children(report, 'matches', MAX_FINDINGS).map(findingIn),
  };
}

/** The scanned image. In a scan of a directory or an SBOM, the target is a string without a digest. */
const targetOf = (source: ReportNode): ReportNode | undefined =>
  typeof source.fields.target === 'string' ? undefined : child(source, 'target');

function findingIn(match: ReportNode): ScanFinding {
  const vulnerability = child(match, 'vulnerability');
  const related = children(match, 'relatedVulnerabilities');
  const artifact = child(match, 'artifact');
  const fix = child(vulnerability, 'fix');
  const vulnerabilityId = idAt(vulnerability, 'id');
  const aliases = new Set(related.map((other) => idAt(other, 'id')));
  aliases.delete(vulnerabilityId);
  const ratings = cvssIn(vulnerability);
  return {
    id: vulnerabilityId,
    aliases: [...aliases],
    severity: severityOf(textAt(vulnerability, 'severity')),
    // Distributions often give no rating. Then the ratings of the related vulnerabilities are used.
    cvss: ratings.length > 0 ? ratings : related.flatMap(cvssIn),
    package: {
      name: textAt(artifact, 'name'),
      version: textAt(artifact, 'version'),
      purl: textAt(artifact, 'purl'),
      type: textAt(artifact, 'type'),
      locations: children(artifact, 'locations').map((location) => textAt(location, 'path')),
    },
    fix: { state: fixStateOf(textAt(fix, 'state')) ?? 'unknown', versions: textsAt(fix, 'versions') },
    description:
      textAt(vulnerability, 'description') || (related.map((other) => textAt(other, 'description'))[0] ?? ''),
    urls: [...new Set([textAt(vulnerability, 'dataSource'), ...textsAt(vulnerability, 'urls')])].filter(Boolean),
    source: textAt(vulnerability, 'namespace'),
  };
}

const cvssIn = (vulnerability: ReportNode): ScanFinding['cvss'] =>
  children(vulnerability, 'cvss').map((cvss) => ({
    version: textAt(cvss, 'version'),
    vector: textAt(cvss, 'vector'),
    score: decimalAt(child(cvss, 'metrics'), 'baseScore'),
  }));
