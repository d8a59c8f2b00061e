/**
 * Checks the packages of package-lock.json for known vulnerabilities, with the advisories of the npm registry. Fails for
 * a high or critical one in a production dependency, and prints all others. Prints SKIPPED and succeeds if the registry
 * does not answer: a mirror may not have the advisories, and a build must not depend on it.
 *
 * tools/audit-allow.json has findings that are accepted, each with a reason and a date until which it is.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import semver from 'semver';

const TIMEOUT_MS = Number(process.env.AUDIT_TIMEOUT_MS ?? 30_000);
const failing = new Set(['high', 'critical']);

interface Package {
  readonly name: string;
  readonly version: string;
  readonly isDevelopment: boolean;
}

interface Advisory {
  readonly url: string;
  readonly title: string;
  readonly severity: string;
  readonly vulnerable_versions: string;
}

interface Finding extends Package {
  readonly id: string;
  readonly advisory: Advisory;
}

interface AllowedFinding {
  /** The id of the advisory, such as GHSA-c2qf-rxjj-qqgw. */
  readonly advisory: string;
  readonly package: string;
  readonly reason: string;
  /** The last day on which it is accepted, such as 2027-01-31. */
  readonly until: string;
}

const root = process.argv[2] ?? dirname(import.meta.dirname);
const readJson = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'));
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const today = new Date().toISOString().slice(0, 10);
const allowed = readJson('tools/audit-allow.json') as AllowedFinding[];
const malformed = allowed.filter((entry) => !isWellFormed(entry));
for (const entry of malformed) {
  print(`tools/audit-allow.json: ${JSON.stringify(entry)} needs advisory, package, reason and until (YYYY-MM-DD)`);
}

const packages = lockedPackages(readJson('package-lock.json') as LockFile);
const answer = await fetchAdvisories(packages);
const failures = report(answer);
process.exitCode = malformed.length + failures > 0 ? 1 : 0;

function isWellFormed({ advisory, package: name, reason, until }: AllowedFinding): boolean {
  return [advisory, name, reason].every((text) => typeof text === 'string' && text.trim() !== '') && isDate(until);
}

function isDate(text: unknown): boolean {
  return typeof text === 'string' && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
}

interface LockFile {
  readonly packages: Readonly<
    Record<string, { readonly name?: string; readonly version?: string; readonly dev?: true; readonly link?: true }>
  >;
}

function lockedPackages({ packages: entries }: LockFile): Package[] {
  return Object.entries(entries).flatMap(([path, { name, version, dev, link }]) =>
    path === '' || link || version === undefined
      ? []
      : [{ name: name ?? path.split('node_modules/').at(-1) ?? path, version, isDevelopment: dev === true }],
  );
}

/** Returns the advisories by the name of their package, or the reason why there are none. */
async function fetchAdvisories(list: readonly Package[]): Promise<Record<string, Advisory[]> | string> {
  const versions: Record<string, string[]> = {};
  for (const { name, version } of list) versions[name] = [...(versions[name] ?? []), version];
  const registry = process.env.npm_config_registry ?? 'https://registry.npmjs.org/';
  const url = new URL('-/npm/v1/security/advisories/bulk', registry.endsWith('/') ? registry : `${registry}/`);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(versions),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) return `${url.host} answered ${response.status} ${response.statusText}`;
    const body: unknown = await response.json();
    return isAdvisories(body) ? body : `${url.host} answered with something other than advisories`;
  } catch (error) {
    const { message, cause } = error as Error;
    return `${url.host} did not answer: ${cause instanceof Error ? cause.message || cause.name : message}`;
  }
}

function isAdvisories(body: unknown): body is Record<string, Advisory[]> {
  const isAdvisory = (one: Advisory): boolean =>
    [one?.url, one?.title, one?.severity, one?.vulnerable_versions].every((text) => typeof text === 'string');
  return (
    typeof body === 'object' &&
    body !== null &&
    !Array.isArray(body) &&
    Object.values(body).every((list) => Array.isArray(list) && list.every(isAdvisory))
  );
}

/** Prints the findings and returns how many of them fail the check. */
function report(advisories: Record<string, Advisory[]> | string): number {
  if (typeof advisories === 'string') {
    print(`SKIPPED: the check for known vulnerabilities did not run, because ${advisories}`);
    return 0;
  }
  const findings = packages.flatMap((one) => findingsOf(one, advisories[one.name] ?? []));
  let failed = 0;
  for (const finding of findings) {
    const { id, name, version, isDevelopment, advisory } = finding;
    const exception = allowed.find((entry) => entry.advisory === id && entry.package === name);
    const isAccepted = exception !== undefined && exception.until >= today;
    const fails = failing.has(advisory.severity) && !isDevelopment && !isAccepted;
    if (fails) failed++;
    const usage = isDevelopment ? 'development' : 'production';
    const note =
      exception && (isAccepted ? ` (accepted until ${exception.until}: ${exception.reason})` : ' (no longer accepted)');
    print(
      `${fails ? 'FAIL' : 'note'}: ${advisory.severity}, ${usage}: ${name} ${version}: ${advisory.title} ${advisory.url}${note ?? ''}`,
    );
  }
  for (const entry of allowed) {
    const isUsed = findings.some(({ id, name }) => id === entry.advisory && name === entry.package);
    if (!isUsed) print(`note: ${entry.advisory} in tools/audit-allow.json is not found any more: remove it`);
  }
  print(`${packages.length} packages checked: ${findings.length} known vulnerabilities, ${failed} to fix`);
  return failed;
}

function findingsOf(one: Package, advisories: readonly Advisory[]): Finding[] {
  return advisories
    .filter(({ vulnerable_versions: range }) => semver.satisfies(one.version, range, { includePrerelease: true }))
    .map((advisory) => ({ ...one, advisory, id: advisory.url.split('/').at(-1) ?? '' }));
}
