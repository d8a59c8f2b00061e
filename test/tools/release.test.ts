import { deepEqual, equal, match, throws } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import manifest from '../../package.json' with { type: 'json' };
import { releaseChangelog } from '../../tools/release/changelog.ts';
import { versionProblem } from '../../tools/release/next-version.ts';
import { NODE_VERSION } from '../../tools/release/platforms.ts';
import { fileEntry, linkEntry, type TarEntry, tarOf } from '../../tools/release/tar.ts';

const time = new Date('2026-02-03T04:05:06Z');

/** What the tar of the system reads from an archive. */
function tar(archive: Buffer, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('tar', args, { input: archive, encoding: 'utf8', env: { TZ: 'UTC' } });
  equal(status, 0, stderr);
  return stdout;
}

test('tar archives have modes, owners, links and one time, sorted and with parent directories', () => {
  const archive = tarOf(
    [
      fileEntry('b/program', 'run', 0o755),
      linkEntry('b/a-link', '../c'),
      { path: 'data', mode: 0o700, uid: 65532, content: 'directory' },
      fileEntry('c', Buffer.alloc(513, 'x')),
    ],
    time,
  );
  const lines = tar(archive, '--list', '--verbose', '--numeric-owner', '--full-time', '--file=-').trim().split('\n');
  deepEqual(
    lines.map((line) => line.replaceAll(/ +/g, ' ')),
    [
      'drwxr-xr-x 0/0 0 2026-02-03 04:05:06 b/',
      'lrwxrwxrwx 0/0 0 2026-02-03 04:05:06 b/a-link -> ../c',
      '-rwxr-xr-x 0/0 3 2026-02-03 04:05:06 b/program',
      '-rw-r--r-- 0/0 513 2026-02-03 04:05:06 c',
      'drwx------ 65532/65532 0 2026-02-03 04:05:06 data/',
    ],
  );
});

test('tar archives keep every name and content, however long', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '.', '-'), minLength: 1, maxLength: 130 });
  const files = fc.dictionary(
    name.filter((text) => !/^(\.+|-.*)$/.test(text)),
    fc.string(),
    { maxKeys: 4, minKeys: 1, noNullPrototype: true },
  );
  fc.assert(
    fc.property(files, (contents) => {
      const entries: TarEntry[] = Object.entries(contents).map(([path, text]) => fileEntry(`d/${path}`, text));
      const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
      const archive = tarOf(entries, time);
      deepEqual(archive, tarOf(entries.toReversed(), time));
      const names = tar(archive, '--list', '--quoting-style=literal', '--file=-').trimEnd().split('\n').slice(1);
      deepEqual(
        names,
        sorted.map(({ path }) => path),
      );
      const text = tar(archive, '--extract', '--to-stdout', '--file=-');
      equal(text, sorted.map(({ content }) => content.toString()).join(''));
    }),
    { numRuns: 30 },
  );
});

test('a changelog gets a section for the version, and Unreleased is empty', () => {
  const text = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [1.0.0] - 2026-01-01\n\n- First.\n';
  const released = '# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-02-03\n\n### Added\n\n- A thing.\n';
  equal(releaseChangelog(text, '1.1.0', '2026-02-03'), `${released}\n## [1.0.0] - 2026-01-01\n\n- First.\n`);
  throws(() => releaseChangelog(released, '1.2.0', '2026-02-04'), /no entries under Unreleased/);
  throws(() => releaseChangelog('# Changelog\n', '1.2.0', '2026-02-04'), /no heading/);
});

test('the first release drops the sentence that there is none', () => {
  const text = '## [Unreleased]\n\nNo version has been released yet.\n\n### Added\n\n- A thing.\n';
  equal(
    releaseChangelog(text, '0.1.0', '2026-02-03'),
    '## [Unreleased]\n\n## [0.1.0] - 2026-02-03\n\n### Added\n\n- A thing.\n',
  );
});

test('a version must be greater than all released ones', () => {
  equal(versionProblem('0.1.0', '0.1.0', []), undefined);
  equal(versionProblem('1.1.0', '1.0.0', ['1.0.0', '0.9.0']), undefined);
  equal(versionProblem('1.1.0-rc.1', '1.0.0', ['1.0.0']), undefined);
  equal(versionProblem('1.1.0', '1.1.0-rc.1', ['1.1.0-rc.1']), undefined);
  match(versionProblem('1.0.0', '1.0.0', ['1.0.0']) ?? '', /not greater than 1\.0\.0/);
  match(versionProblem('1.1.0-rc.1', '1.1.0', ['1.1.0']) ?? '', /not greater than 1\.1\.0/);
  match(versionProblem('1.9.0', '1.10.0', ['1.10.0']) ?? '', /use 1\.10\.1 or greater/);
  match(versionProblem('0.9.0', '1.0.0', []) ?? '', /smaller than 1\.0\.0/);
  for (const text of ['', '1', '1.0', 'v1.0.0', '01.0.0', 'next']) {
    match(versionProblem(text, '1.0.0', []) ?? '', /is not a semantic version such as 1\.1\.0/);
  }
});

test('artifacts contain the Node that the clone runs on', () => {
  equal(NODE_VERSION, manifest.dependencies.node);
});
