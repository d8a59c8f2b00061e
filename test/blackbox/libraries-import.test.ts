import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Result, runInProcess } from '../../src/cli/cli.testing.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import { tarGzOf, zipOf } from '../support/archives.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

const TIME = Date.UTC(2023, 1, 3, 4, 5, 6);

const wheel = (name: string, version: string): Buffer =>
  zipOf([
    {
      name: `${name}-${version}.dist-info/METADATA`,
      content: `Name: ${name}\nVersion: ${version}\nSummary: ${name} does things\n\n`,
      time: TIME,
    },
  ]);
const sdist = (name: string, version: string): Buffer =>
  tarGzOf([{ name: `${name}-${version}/PKG-INFO`, content: `Name: ${name}\nVersion: ${version}\n`, time: TIME }]);
const pom = (artifact: string, version: string): string =>
  `<project><parent><groupId>org.demo</groupId><artifactId>p</artifactId><version>${version}</version></parent>
  <artifactId>${artifact}</artifactId><description>A ${artifact}
  for demos</description></project>`;
const jar = zipOf([{ name: 'META-INF/MANIFEST.MF', content: 'x', time: TIME }]);

describe('importing libraries', () => {
  let server: TestServer;
  let group: string;
  let root: string;

  before(async () => {
    server = await startTestServer(databases[0] ?? assert.fail());
    const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    const { createGroup } = GroupsService.method;
    group = (await api.call(createGroup, { parent: server.organization, group: { name: 'shelf' } })).uid;
    root = mkdtempSync(join(tmpdir(), 'wharf-libraries-'));
    put('wheels/Demo_Pkg-1.0-py3-none-any.whl', wheel('Demo_Pkg', '1.0'));
    put('wheels/Demo_Pkg-1.10-py3-none-any.whl', wheel('Demo_Pkg', '1.10'));
    put('wheels/demo_pkg-1.10.tar.gz', sdist('demo.pkg', '1.10'));
    put('wheels/notes.zip', 'no archive of ours');
    put('maven/org/demo/tool/2.0/tool-2.0.pom', pom('tool', '2.0'));
    put('maven/org/demo/tool/2.0/tool-2.0.jar', jar);
    put('maven/org/demo/tool/maven-metadata.xml', '<metadata/>');
    symlinkSync('..', join(root, 'wheels/round-and-round'));
  });
  after(async () => {
    const store = await openStore(server.dataLocation);
    await assertConsistent(store.reader);
    await store.close();
    await server.remove();
    rmSync(root, { recursive: true, force: true });
  });

  function put(path: string, content: string | Buffer): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }

  const libraries = (...args: string[]): Promise<Result> =>
    runInProcess(['libraries', ...args], { WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir });
  const json = async (...args: string[]) => JSON.parse((await libraries(...args, '-o', 'json')).stdout);
  const imports = () => json('import', root, '--parent', group);

  test('all libraries below a directory are imported, and a second import changes nothing', async () => {
    const { code, stdout, stderr } = await libraries('import', root, '--parent', group);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^libraries: 4 created, 0 updated, 0 unchanged, 0 refused in /);
    const before = await json('list');
    const { created, updated, unchanged, refused } = await imports();
    assert.deepEqual([created, updated, unchanged, refused], [0, 0, 4, 0]);
    assert.deepEqual(await json('list'), before);
  });

  test('imported libraries can be listed and counted, with their versions', async () => {
    const { artifacts } = await json('list');
    assert.deepEqual(
      artifacts.map((a: Record<string, unknown>) => [a.name, a.latestVersion, a.versionCount, a.description]),
      [
        ['Demo_Pkg', '1.10', 2, 'Demo_Pkg does things'],
        ['org.demo:tool', '2.0', 1, 'A tool for demos'],
      ],
    );
    assert.equal((await json('list', '--ecosystems', 'java')).totalCount, '1');
    const [{ uid }] = artifacts;
    for (const id of [uid, uid.slice(-16)]) {
      const { artifactVersions } = await json('versions', id, '--order-by', 'create_time');
      assert.equal(artifactVersions.length, 2);
    }
    const [tool] = (await json('versions', artifacts[1].uid)).artifactVersions;
    assert.equal(tool.sizeBytes, String(jar.length + Buffer.byteLength(pom('tool', '2.0'))));
    assert.equal(tool.createTime, new Date(TIME).toISOString());
    assert.match((await libraries('count')).stdout, /^ECOSYSTEM +ARTIFACTS\njava +1\npython +1\n$/);
    assert.match((await libraries('list')).stdout, /^UID .*NAME .*LATEST/);
  });

  test('a damaged file is refused with its name, and the others are imported', async () => {
    put('more/bad-1.0-py3-none-any.whl', wheel('bad', '1.0').subarray(0, 50));
    put('more/bad-2.0.tar.gz', 'nothing');
    put('more/odd_name-1.0-py3-none-any.whl', wheel('another', '1.0'));
    put('more/good-1.0-py3-none-any.whl', wheel('good', '1.0'));
    put('more/org/demo/tool/3.0/tool-3.0.pom', '<project>');
    put('more/space-1-py3-none-any.whl', wheel('space', '1 0'));
    const file = join(root, 'refused.jsonl');
    const { code, stdout, stderr } = await libraries(
      'import',
      join(root, 'more'),
      '--parent',
      group,
      '--refusals',
      file,
    );
    assert.equal(code, 8);
    assert.match(stdout, /1 created, 0 updated, 0 unchanged, 5 refused/);
    assert.match(stderr, /bad-1\.0-py3-none-any\.whl: is not a zip file, or is damaged: /);
    const refusals = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(refusals.map((refusal) => refusal.file.slice(join(root, 'more').length + 1)).sort(), [
      'bad-1.0-py3-none-any.whl',
      'bad-2.0.tar.gz',
      'odd_name-1.0-py3-none-any.whl',
      'org/demo/tool/3.0',
      'space-1-py3-none-any.whl',
    ]);
    assert.equal(refusals.find(({ id }) => id === 'space 1 0')?.field, 'version');
  });

  test('invalid arguments fail with their exit codes', async () => {
    const missing = await libraries('import', join(root, 'nowhere'), '--parent', group);
    assert.deepEqual([missing.code, missing.stdout], [2, '']);
    assert.match(missing.stderr, /cannot search for libraries: ENOENT/);
    assert.equal((await libraries('import', root)).code, 2);
    assert.equal((await libraries('import', root, '--parent', `${group}/${'0'.repeat(16)}`)).code, 5);
    assert.equal((await libraries('versions', 'x')).code, 8);
  });
});
