import { damaged } from './reading.ts';
import { child, children, id, members, type Node, nodeOf, number, text, texts, time } from './scan-fields.ts';
import { digestsIn, fixStateOf, MAX_FINDINGS, type ScanFinding, type ScanReport, severityOf } from './scan-report.ts';

/** What `trivy image --format json` writes; without anything found, it has no results at all. */
export const isTrivy = (fields: Readonly<Record<string, unknown>>): boolean =>
  'SchemaVersion' in fields && ('ArtifactName' in fields || 'Results' in fields);

export function readTrivy(json: unknown): ScanReport {
  const report = nodeOf(json, '');
  return {
    scanner: 'trivy',
    scannerVersion: text(child(report, 'Trivy'), 'Version'),
    databaseTime: undefined,
    time: time(report, 'CreatedAt'),
    digests: digestsIn(child(report, 'Metadata'), 'RepoDigests'),
    findings: bounded(children(report, 'Results')).flatMap(findingsIn),
  };
}

/** Counted before they are read: a finding takes many times the room of its text. */
function bounded(results: Node[]): Node[] {
  const count = results.reduce((sum, { fields }) => sum + listLength(fields.Vulnerabilities), 0);
  if (count > MAX_FINDINGS) throw damaged('Results', `must have at most ${MAX_FINDINGS} vulnerabilities in all`);
  return results;
}

const listLength = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

const findingsIn = (result: Node): ScanFinding[] =>
  children(result, 'Vulnerabilities', MAX_FINDINGS).map((vulnerability) =>
    findingIn(vulnerability, text(result, 'Type'), text(result, 'Target')),
  );

function findingIn(vulnerability: Node, type: string, target: string): ScanFinding {
  const name = id(vulnerability, 'VulnerabilityID');
  const path = text(vulnerability, 'PkgPath');
  return {
    id: name,
    // What has no name is no alias: by an empty one, all such vulnerabilities would be one.
    aliases: texts(vulnerability, 'VendorIDs').filter((alias) => alias !== '' && alias !== name),
    severity: severityOf(text(vulnerability, 'Severity')),
    cvss: members(child(vulnerability, 'CVSS')).flatMap(cvssIn),
    package: {
      name: text(vulnerability, 'PkgName'),
      version: text(vulnerability, 'InstalledVersion'),
      purl: text(child(vulnerability, 'PkgIdentifier'), 'PURL'),
      type,
      // A program or a lock file is its own target. That of the system's packages is the image, with a remark: `app (alpine 3.22)`.
      locations: path ? [path] : target.includes('/') && !target.includes(' ') ? [target] : [],
    },
    fix: {
      state: fixStateOf(text(vulnerability, 'Status')) ?? (text(vulnerability, 'FixedVersion') ? 'fixed' : 'unknown'),
      versions: text(vulnerability, 'FixedVersion')
        .split(',')
        .map((version) => version.trim())
        .filter(Boolean),
    },
    description: text(vulnerability, 'Description') || text(vulnerability, 'Title'),
    urls: [...new Set([text(vulnerability, 'PrimaryURL'), ...texts(vulnerability, 'References')])].filter(Boolean),
    source: text(child(vulnerability, 'DataSource'), 'ID'),
  };
}

/** Each source may rate by several versions, with the version only in the vector. */
function cvssIn(rating: Node): ScanFinding['cvss'] {
  const of = (version: string, vector: string, score: string): ScanFinding['cvss'] =>
    vector === '' && score === '' ? [] : [{ version, vector, score }];
  const v3 = text(rating, 'V3Vector');
  return [
    ...of('4.0', text(rating, 'V40Vector'), number(rating, 'V40Score')),
    ...of(v3.startsWith('CVSS:3.0/') ? '3.0' : '3.1', v3, number(rating, 'V3Score')),
    ...of('2.0', text(rating, 'V2Vector'), number(rating, 'V2Score')),
  ];
}
