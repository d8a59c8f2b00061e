import { type ReportNode, textsAt } from './report-node.ts';

/** The report of a vulnerability scanner about an image, in a form that is the same for all scanners. */
export interface ScanReport {
  readonly scanner: 'grype' | 'trivy';
  /** Empty if the report does not have it. */
  readonly scannerVersion: string;
  /** The build time of the scanner's database in milliseconds. */
  readonly databaseTime: number | undefined;
  /** The time of the scan. */
  readonly time: number | undefined;
  /** The digests of the image. Those of registries come first. */
  readonly digests: readonly string[];
  readonly findings: readonly ScanFinding[];
}

export type ScanSeverity = 'critical' | 'high' | 'medium' | 'low' | 'negligible' | 'unknown';
export type FixState = 'fixed' | 'not fixed' | 'wont fix' | 'unknown';

/** A vulnerability in a package. */
export interface ScanFinding {
  readonly id: string;
  /** Other ids of the same vulnerability. */
  readonly aliases: readonly string[];
  readonly severity: ScanSeverity;
  readonly cvss: readonly ScanCvss[];
  readonly package: {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly type: string;
    readonly locations: readonly string[];
  };
  readonly fix: { readonly state: FixState; readonly versions: readonly string[] };
  readonly description: string;
  readonly urls: readonly string[];
  readonly source: string;
}

export interface ScanCvss {
  readonly version: string;
  readonly vector: string;
  /** Empty if the report does not have it. */
  readonly score: string;
}

/** More than any image has. Each finding takes space in the database and in responses. */
export const MAX_FINDINGS = 50_000;

const SEVERITIES: ReadonlySet<string> = new Set(['critical', 'high', 'medium', 'low', 'negligible']);

/** Scanners use the same names for severities, in different case. */
export function severityOf(name: string): ScanSeverity {
  const lower = name.toLowerCase();
  return SEVERITIES.has(lower) ? (lower as ScanSeverity) : 'unknown';
}

/** The names of fix states in all scanners. */
const FIX_STATES: ReadonlyMap<string, FixState> = new Map(
  Object.entries({
    fixed: 'fixed',
    'not-fixed': 'not fixed',
    affected: 'not fixed',
    fix_deferred: 'not fixed',
    'wont-fix': 'wont fix',
    will_not_fix: 'wont fix',
    end_of_life: 'wont fix',
  }),
);

/** Returns undefined for an unknown name. */
export const fixStateOf = (name: string): FixState | undefined => FIX_STATES.get(name);

const DIGEST = /@(sha256:[0-9a-f]{64})$/;
/** An image has one name for each registry that it was pushed to. Each digest is searched in the repo. */
const MAX_NAMES = 50;

/** The distinct digests in a list of names such as `host/name@sha256:…`. */
export const digestsIn = (node: ReportNode, key: string): string[] => [
  ...new Set(textsAt(node, key, MAX_NAMES).flatMap((name) => DIGEST.exec(name)?.[1] ?? [])),
];
