import { malformed } from '../strict-json.ts';
import {
  child,
  children,
  decimalAt,
  idAt,
  members,
  type ReportNode,
  textAt,
  textsAt,
  timeAt,
  toNode,
} from './report-node.ts';
import { digestsIn, fixStateOf, MAX_FINDINGS, type ScanFinding, type ScanReport, severityOf } from './scan-report.ts';

/** Whether this is the output of `trivy image --format json`. Without findings, it has no `Results`. */
export const isTrivy = (fields: Readonly<Record<string, unknown>>): boolean =>
  'SchemaVersion' in fields && ('ArtifactName' in fields || 'Results' in fields);

export function readTrivy(json: unknown): ScanReport {
  const report = toNode(json, '');
  return {
    scanner: 'trivy',
    scannerVersion: textAt(child(report, 'Trivy'), 'Version'),
    databaseTime: undefined,
    time: timeAt(report, 'CreatedAt'),
    digests: digestsIn(child(report, 'Metadata'), 'RepoDigests'),
    findings: requireFindingLimit(children(report, 'Results')).flatMap(findingsIn),
  };
}

/** Counts the findings before they are read, because a finding takes much more memory than its JSON. */
function requireFindingLimit(results: ReportNode[]): ReportNode[] {
  const count = results.reduce((sum, { fields }) => sum + listLength(fields.Vulnerabilities), 0);
  if (count > MAX_FINDINGS) throw malformed('Results', `must have at most ${MAX_FINDINGS} vulnerabilities in total`);
  return results;
}

const listLength = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

const findingsIn = (result: ReportNode): ScanFinding[] =>
  children(result, 'Vulnerabilities', MAX_FINDINGS).map((vulnerability) =>
    findingIn(vulnerability, textAt(result, 'Type'), textAt(result, 'Target')),
  );

function findingIn(vulnerability: ReportNode, type: string, target: string): ScanFinding {
  const vulnerabilityId = idAt(vulnerability, 'VulnerabilityID');
  const path = textAt(vulnerability, 'PkgPath');
  return {
    id: vulnerabilityId,
    // Vulnerabilities with a common alias are treated as one, so empty aliases must be left out.
    aliases: textsAt(vulnerability, 'VendorIDs').filter((alias) => alias !== '' && alias !== vulnerabilityId),
    severity: severityOf(textAt(vulnerability, 'Severity')),
    cvss: members(child(vulnerability, 'CVSS')).flatMap(cvssIn),
    package: {
      name: textAt(vulnerability, 'PkgName'),
      version: textAt(vulnerability, 'InstalledVersion'),
      purl: textAt(child(vulnerability, 'PkgIdentifier'), 'PURL'),
      type,
      // The target of a program or a lock file is its path. The target of system packages is `app (alpine 3.22)`.
      locations: path ? [path] : target.includes('/') && !target.includes(' ') ? [target] : [],
    },
    fix: {
      state:
        fixStateOf(textAt(vulnerability, 'Status')) ?? (textAt(vulnerability, 'FixedVersion') ? 'fixed' : 'unknown'),
      versions: textAt(vulnerability, 'FixedVersion')
        .split(',')
        .map((version) => version.trim())
        .filter(Boolean),
    },
    description: textAt(vulnerability, 'Description') || textAt(vulnerability, 'Title'),
    urls: [...new Set([textAt(vulnerability, 'PrimaryURL'), ...textsAt(vulnerability, 'References')])].filter(Boolean),
    source: textAt(child(vulnerability, 'DataSource'), 'ID'),
  };
}

/** A source may rate by several CVSS versions. Only the vector tells 3.0 from 3.1. */
function cvssIn(rating: ReportNode): ScanFinding['cvss'] {
  const rate = (version: string, vector: string, score: string): ScanFinding['cvss'] =>
    vector === '' && score === '' ? [] : [{ version, vector, score }];
  const v3 = textAt(rating, 'V3Vector');
  return [
    ...rate('4.0', textAt(rating, 'V40Vector'), decimalAt(rating, 'V40Score')),
    ...rate(v3.startsWith('CVSS:3.0/') ? '3.0' : '3.1', v3, decimalAt(rating, 'V3Score')),
    ...rate('2.0', textAt(rating, 'V2Vector'), decimalAt(rating, 'V2Score')),
  ];
}
