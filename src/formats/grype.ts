import { child, children, id, type Node, nodeOf, number, text, texts, time } from './scan-fields.ts';
import { digestsIn, fixStateOf, MAX_FINDINGS, type ScanFinding, type ScanReport, severityOf } from './scan-report.ts';

/** What `grype <image> -o json` writes, from version 0.60 on. */
export const isGrype = (fields: Readonly<Record<string, unknown>>): boolean =>
  'matches' in fields && 'descriptor' in fields;

export function readGrype(json: unknown): ScanReport {
  const report = nodeOf(json, '');
  const descriptor = child(report, 'descriptor');
  const target = targetOf(child(report, 'source'));
  const database = child(descriptor, 'db');
  return {
    scanner: 'grype',
    scannerVersion: text(descriptor, 'version'),
    // Since version 6 of its schema, the database tells of itself one level deeper.
    databaseTime: time(database, 'built') ?? time(child(database, 'status'), 'built'),
    time: time(descriptor, 'timestamp'),
    digests: target ? [...digestsIn(target, 'repoDigests'), text(target, 'manifestDigest')].filter(Boolean) : [],
    findings: children(report, 'matches', MAX_FINDINGS).map(findingIn),
  };
}

/** A scan of a directory or an SBOM has the target as a text, and no digest. */
const targetOf = (source: Node): Node | undefined =>
  typeof source.fields.target === 'string' ? undefined : child(source, 'target');

function findingIn(match: Node): ScanFinding {
  const vulnerability = child(match, 'vulnerability');
  const related = children(match, 'relatedVulnerabilities');
  const artifact = child(match, 'artifact');
  const fix = child(vulnerability, 'fix');
  const name = id(vulnerability, 'id');
  const aliases = new Set(related.map((other) => id(other, 'id')));
  aliases.delete(name);
  const own = cvssIn(vulnerability);
  return {
    id: name,
    aliases: [...aliases],
    severity: severityOf(text(vulnerability, 'severity')),
    // What distributions say is often without a rating; then that of the same vulnerability elsewhere counts.
    cvss: own.length > 0 ? own : related.flatMap(cvssIn),
    package: {
      name: text(artifact, 'name'),
      version: text(artifact, 'version'),
      purl: text(artifact, 'purl'),
      type: text(artifact, 'type'),
      locations: children(artifact, 'locations').map((location) => text(location, 'path')),
    },
    fix: { state: fixStateOf(text(fix, 'state')) ?? 'unknown', versions: texts(fix, 'versions') },
    description: text(vulnerability, 'description') || (related.map((other) => text(other, 'description'))[0] ?? ''),
    urls: [...new Set([text(vulnerability, 'dataSource'), ...texts(vulnerability, 'urls')])].filter(Boolean),
    source: text(vulnerability, 'namespace'),
  };
}

const cvssIn = (rated: Node): ScanFinding['cvss'] =>
  children(rated, 'cvss').map((cvss) => ({
    version: text(cvss, 'version'),
    vector: text(cvss, 'vector'),
    score: number(child(cvss, 'metrics'), 'baseScore'),
  }));
