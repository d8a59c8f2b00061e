import { type Node, texts } from './scan-fields.ts';

/** What a vulnerability scanner says about an image, whichever scanner it was. */
export interface ScanReport {
  readonly scanner: 'grype' | 'trivy';
  /** Empty when the report does not tell. */
  readonly scannerVersion: string;
  /** When the scanner's database was built, in milliseconds. */
  readonly databaseTime: number | undefined;
  /** When the image was scanned. */
  readonly time: number | undefined;
  /** Digests of the image that the report names; those under which a registry has it come first. */
  readonly digests: readonly string[];
  readonly findings: readonly ScanFinding[];
}

export type ScanSeverity = 'critical' | 'high' | 'medium' | 'low' | 'negligible' | 'unknown';
export type FixState = 'fixed' | 'not fixed' | 'wont fix' | 'unknown';

/** One vulnerability in one package. */
export interface ScanFinding {
  readonly id: string;
  /** Other names of the same vulnerability. */
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
  /** Empty when nobody tells. */
  readonly score: string;
}

/** More than any image has; each costs room in the database and in every answer. */
export const MAX_FINDINGS = 50_000;

const SEVERITIES: ReadonlySet<string> = new Set(['critical', 'high', 'medium', 'low', 'negligible']);

/** Scanners agree on the words, though not on their case. */
export function severityOf(word: string): ScanSeverity {
  const lower = word.toLowerCase();
  return SEVERITIES.has(lower) ? (lower as ScanSeverity) : 'unknown';
}

/** The words of each scanner. */
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

/** Nothing for a word that says nothing. */
export const fixStateOf = (word: string): FixState | undefined => FIX_STATES.get(word);

const DIGEST = /@(sha256:[0-9a-f]{64})$/;
/** Each is looked for in the repo; an image has one name for each registry that it was pushed to. */
const MAX_NAMES = 50;

/** The digests in a list of names such as `host/name@sha256:…`, each once: many names may mean the same image. */
export const digestsIn = (node: Node, key: string): string[] => [
  ...new Set(texts(node, key, MAX_NAMES).flatMap((name) => DIGEST.exec(name)?.[1] ?? [])),
];
