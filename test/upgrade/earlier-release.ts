import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import list from './releases.json' with { type: 'json' };

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface EarlierRelease {
  readonly version: string;
  /** The path of the program that `node` runs. */
  readonly program: string;
}

/** Why there is no earlier release to run. */
export interface Unavailable {
  readonly problem: string;
  /** Whether the checkout has no history, which no installation can change. */
  readonly hasNoHistory?: boolean;
}

/** The release before this one, which upgrades begin with. */
const [previous] = list.releases.slice(-1);

/**
 * Makes the release before this one ready to run: its sources from the history of the repository, and its
 * dependencies. Returns why that is not possible otherwise.
 */
export function prepareEarlierRelease(): EarlierRelease | Unavailable {
  if (previous === undefined) return { problem: 'test/upgrade/releases.json names no release' };
  const { version, commit, program } = previous;
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT, stdio: 'pipe' });
  } catch {
    return {
      problem: `the history has no commit ${commit} (${version}): run git fetch --unshallow`,
      hasNoHistory: true,
    };
  }
  const directory = join(tmpdir(), `wharf-release-${version}-${commit}-${userTag()}`);
  if (!existsSync(directory)) {
    const building = mkdtempSync(`${directory}-`);
    try {
      extract(commit, building);
      installDependencies(building);
      renameSync(building, directory);
    } catch (error) {
      rmSync(building, { recursive: true, force: true });
      if (!existsSync(directory)) return { problem: `cannot prepare ${version}: ${(error as Error).message}` };
    }
  }
  return { version, program: join(directory, program) };
}

/** Different checkouts must not share a directory: it may link to the dependencies of one of them. */
const userTag = (): string => createHash('sha256').update(ROOT).digest('hex').slice(0, 8);

function extract(commit: string, directory: string): void {
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1024 * 1024 * 1024 });
  mkdirSync(directory, { recursive: true });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
}

/** Links the dependencies of this checkout if the release has the same, and installs its own otherwise. */
function installDependencies(directory: string): void {
  if (isDeepStrictEqual(lockedPackages(directory), lockedPackages(ROOT))) {
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    return;
  }
  execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: directory,
    stdio: 'pipe',
  });
}

/** The production dependencies of a lock file, with their versions. */
function lockedPackages(directory: string): Record<string, string> {
  const { packages } = JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string; dev?: true; optional?: true }>;
  };
  const production = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev && !isNode(path));
  return Object.fromEntries(production.map(([path, { version = '' }]) => [path, version]).sort());
}

/** Both releases run on the Node of this checkout. */
const isNode = (path: string): boolean => /^node_modules\/node(?:-bin-[\w-]+|-linux-[\w-]+|$)/.test(path);
