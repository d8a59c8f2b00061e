import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { type Result, runInProcess, wharf as spawned } from '../../src/cli/cli.testing.ts';
import { type AdvisoryJson, stripServerFields } from '../../src/formats/advisories/advisory-json.ts';
import { decodeAdvisories } from '../../src/formats/advisories/decode-advisories.ts';
import { advisoryFiles } from '../support/advisory-files.ts';
import { advisoryYaml, openVex, pypiOsv, withdrawnOsv } from '../support/advisory-samples.ts';
import { zipOf } from '../support/archives.ts';
import { damagedText } from '../support/damaged-text.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** The public database has about 30,000: WHARF_TEST_ADVISORIES=30000. */
const COUNT = Number(process.env.WHARF_TEST_ADVISORIES ?? 600);
const FILES = Math.ceil((COUNT * 1600) / 30_000);

type Summary = { created: number; updated: number; unchanged: number; refused: number };

for (const database of databases) {
  describe(`imports on ${database.name}`, () => {
    let server: TestServer;
    let directory: string;
    let groups = 0;

    before(async () => {
      server = await startTestServer(database);
      directory = mkdtempSync(join(tmpdir(), 'wharf-import-'));
    });
    after(async () => {
      await server.remove();
      rmSync(directory, { recursive: true });
    });

    const wharf = (...args: string[]): Promise<Result> =>
      runInProcess(args, { WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir });
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await wharf(...args, '-o', 'json');
      assert.deepEqual([code, stderr], [0, ''], args.join(' '));
      return JSON.parse(stdout);
    };
    /** Creates a group in a new organization, because advisory ids are unique in an organization. */
    const newGroup = async (): Promise<string> => {
      const { uid } = await json('iam', 'groups', 'create', '--name', `imports ${++groups}`);
      return (await json('iam', 'groups', 'create', '--parent', uid, '--name', 'advisories')).uid;
    };
    const importFiles = async (group: string, ...paths: string[]): Promise<Summary> => {
      const { seconds: _, refusals, ...summary } = await json('advisories', 'import', ...paths, '--parent', group);
      assert.deepEqual(refusals, []);
      return summary;
    };
    const write = (name: string, content: string | Buffer): string => {
      const path = join(directory, name);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, content);
      return path;
    };
    const stored = async (group: string, ...filters: string[]): Promise<AdvisoryJson[]> =>
      (await json('advisories', 'list', '--descendants-of', group, ...filters)).advisories;
    const storedContent = async (group: string): Promise<AdvisoryJson[]> =>
      (await stored(group)).map(stripServerFields).sort((a, b) => (a.advisoryId < b.advisoryId ? -1 : 1));

    const samples = (): string[] => [
      write('samples/curl.advisories.yaml', advisoryYaml),
      write('samples/osv.jsonl.gz', gzipSync(`${JSON.stringify(pypiOsv)}\n${JSON.stringify(withdrawnOsv)}\n`)),
      write('samples/vex.zip', zipOf([{ name: 'vex.json', content: JSON.stringify(openVex, null, 2) }])),
    ];

    test('every format is imported once and can be listed', async () => {
      const group = await newGroup();
      const paths = samples();
      assert.deepEqual(await importFiles(group, ...paths), { created: 10, updated: 0, unchanged: 0, refused: 0 });
      assert.deepEqual(await importFiles(group, join(directory, 'samples')), {
        ...{ created: 0, updated: 0, unchanged: 10, refused: 0 },
      });
      const names = async (...filters: string[]) =>
        (await stored(group, ...filters)).map(({ artifactName }) => artifactName).sort();
      assert.deepEqual(await names('--aliases', 'CVE-2024-1111'), ['example', 'python-example']);
      assert.deepEqual(await names('--latest-event-type', 'fixed'), ['curl', 'example', 'example.com/module', 'git']);
      assert.deepEqual(await names('--component-types', 'go-module'), ['curl']);
      const table = await wharf(
        'advisories',
        'list',
        '--descendants-of',
        group,
        '--aliases',
        'PYSEC-2024-1',
        '--limit',
        '1',
      );
      assert.match(
        table.stdout,
        /^UID +ID +ARTIFACT +TYPE +ALIASES +EVENTS +UPDATED\n\S+ +CGA-\S+ +\S*example +\w+ +PYSEC/,
      );
      const [first] = await stored(group);
      const { uid } = first as unknown as { uid: string };
      assert.deepEqual(await json('advisories', 'get', uid), first);
    });

    test('an export in any format can be imported again without a change', async () => {
      const group = await newGroup();
      await importFiles(group, ...samples());
      const before = await storedContent(group);
      for (const format of ['yaml', 'osv', 'openvex']) {
        const to = join(directory, `export-${format}`);
        const { advisories } = await json(
          'advisories',
          'export',
          '--format',
          format,
          '--to',
          to,
          '--descendants-of',
          group,
        );
        assert.equal(advisories, 10);
        assert.deepEqual(await importFiles(group, to), { created: 0, updated: 0, unchanged: 10, refused: 0 }, format);
        const elsewhere = await newGroup();
        assert.deepEqual(
          await importFiles(elsewhere, to),
          { created: 10, updated: 0, unchanged: 0, refused: 0 },
          format,
        );
        assert.deepEqual(await storedContent(elsewhere), before, format);
      }
      const { stdout } = await wharf('advisories', 'export', '--format', 'osv', '--descendants-of', group);
      assert.equal(stdout, readFileSync(join(directory, 'export-osv'), 'utf8'), 'standard output has the same lines');
      const part = join(directory, 'export-part');
      await json(
        'advisories',
        'export',
        '--format',
        'yaml',
        '--to',
        part,
        '--descendants-of',
        group,
        '--artifact-names',
        'git',
      );
      assert.deepEqual(readdirSync(part), ['git.advisories.yaml']);
      const { code, stderr } = await wharf('advisories', 'export', '--format', 'yaml');
      assert.deepEqual([code, stderr], [2, 'wharf: --format yaml writes a directory of files: give it with --to\n']);
    });

    test(`${COUNT} advisories in ${FILES} files: only the edited advisory changes in a later import`, async (t) => {
      const group = await newGroup();
      const subdirectory = `yaml-${COUNT}`;
      for (const [name, text] of advisoryFiles(COUNT, FILES)) write(join(subdirectory, name), text);
      const start = performance.now();
      const path = join(directory, subdirectory);
      assert.deepEqual(await importFiles(group, path), { created: COUNT, updated: 0, unchanged: 0, refused: 0 });
      t.diagnostic(`imported in ${((performance.now() - start) / 1000).toFixed(1)} s`);
      const before = await storedContent(group);
      assert.deepEqual(await importFiles(group, path), { created: 0, updated: 0, unchanged: COUNT, refused: 0 });

      const file = join(path, 'package-3.advisories.yaml');
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace('fixed-version: 1.2.3-r1', 'fixed-version: 1.2.3-r2'));
      assert.deepEqual(await importFiles(group, path), { created: 0, updated: 1, unchanged: COUNT - 1, refused: 0 });
      const now = await storedContent(group);
      const changed = now.filter((advisory, at) => JSON.stringify(advisory) !== JSON.stringify(before[at]));
      assert.deepEqual(
        changed.map(({ artifactName, events = [] }) => [artifactName, events.at(-1)?.fixed?.fixedVersion]),
        [['package-3', '1.2.3-r2']],
      );
    });

    test('every record of a damaged file is imported completely or refused with a reason', async () => {
      const group = await newGroup();
      const texts = [advisoryYaml, JSON.stringify(pypiOsv), JSON.stringify(withdrawnOsv), JSON.stringify(openVex)];
      const damaged = fc.sample(fc.constantFrom(...texts).chain(damagedText), { seed: 7, numRuns: 150 });
      const subdirectory = join(directory, 'damaged');
      const expected = new Map<string, AdvisoryJson>();
      for (const [at, text] of damaged.entries()) {
        const name = `damaged/${String(at).padStart(3, '0')}.yaml`;
        if (text.trim() === '') continue;
        write(name, text);
        for (const one of decodeAdvisories(text)) if ('record' in one) expected.set(one.id, one.record);
      }
      const refusals = join(directory, 'refusals.jsonl');
      const { code, stdout } = await wharf(
        ...['advisories', 'import', subdirectory, '--parent', group, '--refusals', refusals, '-o', 'json'],
      );
      assert.equal(code, 8, 'some were refused, and nothing else failed');
      const { refused } = JSON.parse(stdout);
      const lines = readFileSync(refusals, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(lines.length, refused);
      for (const { file, reason } of lines)
        assert.ok(file.startsWith(subdirectory) && reason !== '', JSON.stringify({ file, reason }));
      // The server may refuse more than the decoders, such as names that are too long.
      const ids = new Set(lines.map(({ id }) => id));
      const importable = [...expected.values()].filter(({ advisoryId }) => !ids.has(advisoryId));
      const found = new Map(
        (await stored(group)).map((advisory) => [advisory.advisoryId, stripServerFields(advisory)]),
      );
      for (const advisory of importable) assert.deepEqual(found.get(advisory.advisoryId), advisory);
    });

    test('vulnerability metadata from OSV files is imported once', async () => {
      const group = await newGroup();
      const path = write('vulns.jsonl', `${JSON.stringify(pypiOsv)}\n${JSON.stringify(withdrawnOsv)}\nrubbish\n`);
      const first = await wharf('vulns', 'import', path, '--parent', group);
      assert.equal(first.code, 8);
      assert.match(first.stdout, /^vulnerabilities: 2 created, 0 updated, 0 unchanged, 1 refused in /);
      assert.match(first.stderr, /^wharf: refused 1 of the vulnerabilities:\n {2}\S+vulns\.jsonl:3: is not JSON\n$/);
      const env = { WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir };
      const again = await spawned(['vulns', 'import', '-', '--parent', group], env, JSON.stringify(pypiOsv, null, 2));
      assert.match(again.stdout, /0 created, 0 updated, 1 unchanged/, again.stderr);
    });

    test('a missing, invalid or absent parent fails with its exit code', async () => {
      const [path = ''] = samples();
      const { code, stderr } = await wharf(
        'advisories',
        'import',
        path,
        '--parent',
        `${server.organization}/0123456789abcdef`,
      );
      assert.equal(code, 5, stderr);
      assert.equal((await wharf('advisories', 'import', path, '--parent', 'rubbish')).code, 8);
      assert.equal((await wharf('advisories', 'import', path)).code, 2);
    });
  });
}
