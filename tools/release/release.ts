/**
 * Makes a release: sets the version, commits, builds all artifacts into release/ with checksums and provenance, and
 * tags. If a step fails, the commit is undone. It pushes and publishes nothing.
 *
 *     npm run release -- 1.2.0
 *     npm run release -- 1.2.0 --dry-run    # neither commits nor tags, and restores the version files
 *     npm run release -- 1.2.0 --dry-run --artifacts chart,npm
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { type ArtifactName, artifactNames, buildArtifacts } from './artifacts.ts';
import { releaseChangelog } from './changelog.ts';
import { versionProblem } from './next-version.ts';
import { checksumsOf, provenanceOf } from './provenance.ts';
import { run } from './run.ts';
import { readSource, type Source } from './source.ts';

const VERSION_FILES = ['package.json', 'package-lock.json', 'CHANGELOG.md', 'deploy/helm/wharfinger/Chart.yaml'];
const USAGE = 'Usage: npm run release -- <version> [--dry-run [--artifacts <names>]] [--builder <uri>]';

class ReleaseError extends Error {}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { root } = readSource();
const git = (...args: string[]): string => run('git', args, root).trim();

interface Options {
  readonly isDryRun: boolean;
  readonly names: readonly ArtifactName[];
  readonly builder: string;
}

async function release(version: string, { isDryRun, names, builder }: Options): Promise<void> {
  const started = new Date();
  checkState(version);
  const previous = git('rev-parse', 'HEAD');
  const undo = () => git('reset', '--quiet', '--hard', previous);
  process.once('SIGINT', () => {
    undo();
    process.exit(130);
  });
  try {
    setVersion(version, started.toISOString().slice(0, 10));
    if (!isDryRun) git('commit', '--quiet', '--message', `Release ${version}`, '--', ...VERSION_FILES);
    const source = readSource(root);
    await writeArtifacts(names, source, builder, started);
    if (!isDryRun) git('tag', '--annotate', '--message', `Wharfinger ${version}`, `v${version}`);
  } catch (error) {
    undo();
    throw error;
  }
  if (isDryRun) {
    git('checkout', '--quiet', '--', ...VERSION_FILES);
    print(`Dry run: v${version} is neither committed nor tagged.`);
  } else {
    print(`v${version} is committed and tagged. To publish it, see "Publishing a release" in docs/INSTALL.md.`);
  }
}

/** Throws if the tree has changes or the version cannot follow the released ones. */
function checkState(version: string): void {
  const current = readSource(root).version;
  const released = git('tag', '--list', 'v*')
    .split('\n')
    .map((tag) => tag.slice(1));
  const problem = versionProblem(version, current, released);
  if (problem) throw new ReleaseError(problem);
  const changed = git('status', '--porcelain');
  if (changed) throw new ReleaseError(`the working tree has changes. Commit or remove them:\n${changed}`);
}

function setVersion(version: string, date: string): void {
  const edit = (path: string, change: (text: string) => string): void =>
    writeFileSync(join(root, path), change(readFileSync(join(root, path), 'utf8')));
  edit('CHANGELOG.md', (text) => releaseChangelog(text, version, date));
  edit('deploy/helm/wharfinger/Chart.yaml', (text) =>
    text.replace(/^version: .*$/m, `version: ${version}`).replace(/^appVersion: .*$/m, `appVersion: "${version}"`),
  );
  run('npm', ['version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts'], root);
}

async function writeArtifacts(
  names: readonly ArtifactName[],
  source: Source,
  builder: string,
  started: Date,
): Promise<void> {
  rmSync(source.outputDirectory, { recursive: true, force: true });
  const built = await buildArtifacts(names, source, (file, bytes) =>
    print(`${relative(root, file)} (${(bytes / 1e6).toFixed(1)} MB)`),
  );
  const provenance = join(source.outputDirectory, `wharfinger-${source.version}-provenance.json`);
  writeFileSync(provenance, provenanceOf(built, source, { builder, started, finished: new Date() }));
  const checksums = join(source.outputDirectory, 'SHA256SUMS');
  writeFileSync(checksums, checksumsOf([...built.files, provenance]));
  for (const file of [provenance, checksums]) print(relative(root, file));
}

/** A release has all artifacts. Only a dry run can leave some out. */
function parseNames(text: string, isDryRun: boolean): ArtifactName[] {
  const names = text.split(',');
  const unknown = names.find((name) => !artifactNames.includes(name as ArtifactName));
  if (unknown !== undefined) {
    throw new ReleaseError(`--artifacts: "${unknown}" is not one of ${artifactNames.join(', ')}`);
  }
  if (!isDryRun && names.length < artifactNames.length) throw new ReleaseError('--artifacts needs --dry-run');
  return names as ArtifactName[];
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      'dry-run': { type: 'boolean', default: false },
      artifacts: { type: 'string', default: artifactNames.join() },
      builder: { type: 'string', default: 'https://wharfinger.dev/builders/local' },
    },
  });
  const [version, ...more] = positionals;
  if (values.help) {
    print(`${USAGE}\nArtifacts: ${artifactNames.join(', ')}`);
  } else if (version === undefined || more.length > 0) {
    throw new ReleaseError(USAGE);
  } else {
    await release(version, {
      isDryRun: values['dry-run'],
      names: parseNames(values.artifacts, values['dry-run']),
      builder: values.builder,
    });
  }
} catch (error) {
  process.stderr.write(`release: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
