import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { newUid, parseUid, type Uid } from '../../src/base/uid.ts';
import { openFilesystemBlobs } from '../../src/blobs/filesystem.ts';
import { type Result, runInProcess } from '../../src/cli/cli.testing.ts';
import { type Group, GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { registryDirectory } from '../../src/oci/registry-directory.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store, Transaction } from '../../src/store/store.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { digestOf, insertImage } from '../support/images.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

const { createGroup, updateGroup, deleteGroup } = GroupsService.method;
const LAYER = 'a layer';
const UNKNOWN = `${'0'.repeat(40)}/${'1'.repeat(16)}`;

interface CheckOutput {
  readonly resources: number;
  readonly blobs: number;
  readonly counts: Record<string, { found: number; repaired: number }>;
  readonly differences: readonly { kind: string; uid: string; problem: string; advice?: string }[];
}

for (const database of databases) {
  describe(`wharf db on ${database.name}`, () => {
    let server: TestServer;
    let store: Store;
    let repo: Uid;
    let env: Record<string, string>;

    before(async () => {
      server = await startTestServer(database);
      const { dataDir, databaseUrl } = server.dataLocation;
      env = { WHARF_DATA: dataDir, ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }) };
      store = await openStore(server.dataLocation);
      const parent = parseUid('organization', server.organization);
      repo = newUid(parent);
      const message = create(RepoSchema, { name: 'app', description: 'an app' });
      await store.write((tx) => insert(tx, repos, { message, uid: repo, parent }, 1000));
      await insertImage(store, repo, 'latest', { content: LAYER });
      const blobs = await openFilesystemBlobs(registryDirectory(dataDir));
      for (const content of [LAYER, JSON.stringify({ os: 'linux', architecture: 'amd64', made: LAYER })]) {
        const upload = await blobs.begin();
        await blobs.append(upload, 0, bytesOf(content));
        await blobs.finish(upload, digestOf(content));
      }
    });
    after(async () => {
      await store?.close();
      await server?.remove();
    });

    const check = async (...args: string[]): Promise<CheckOutput & { code: number; stderr: string }> => {
      const { code, stdout, stderr }: Result = await runInProcess(['db', 'check', '-o', 'json', ...args], env);
      assert.ok(stdout !== '', stderr);
      return { code, stderr, ...(JSON.parse(stdout) as CheckOutput) };
    };
    const assertClean = async (): Promise<void> => {
      const { code, differences, stderr } = await check();
      assert.deepEqual(differences, []);
      assert.equal(code, 0, stderr);
    };

    test('a database without differences', async () => {
      await assertClean();
      const { resources, blobs } = await check();
      const row = await store.reader.get<{ n: number }>('SELECT count(*) AS n FROM resource');
      assert.deepEqual({ resources, blobs }, { resources: row?.n, blobs: 2 });
    });

    const damages: readonly [problem: string, plant: (tx: Transaction) => unknown][] = [
      ['missing entry', (tx) => tx.run("DELETE FROM entry WHERE uid = $1 AND sort = 'name'", repo)],
      [
        'missing entry',
        async (tx) => {
          await tx.run("DELETE FROM entry WHERE list IN (SELECT id FROM list WHERE kind = 'repo')");
          await tx.run("DELETE FROM list WHERE kind = 'repo'");
        },
      ],
      ['extra entry', (tx) => tx.run(EXTRA_ENTRY, UNKNOWN)],
      ['extra entry', (tx) => tx.run("UPDATE entry SET key = 'wrong' WHERE uid = $1 AND sort = 'name'", repo)],
      ['list size', (tx) => tx.run("UPDATE list SET n = n + 1 WHERE kind = 'group'")],
      ['list size', (tx) => tx.run("UPDATE list SET n = n - 1 WHERE kind = 'tag' AND facet = ''")],
      ['sort keys', (tx) => tx.run("UPDATE resource SET keys = '{}' WHERE uid = $1", repo)],
      ['missing key', (tx) => tx.run("DELETE FROM natural_key WHERE kind = 'repo'")],
      ['missing key', (tx) => tx.run("UPDATE natural_key SET uid = $1 WHERE kind = 'repo'", UNKNOWN)],
      ['extra key', (tx) => tx.run("INSERT INTO natural_key (kind, key, uid) VALUES ('repo', 'k', $1)", repo)],
      ['missing reference', (tx) => tx.run("DELETE FROM reference WHERE kind = 'role binding'")],
      [
        'extra reference',
        (tx) => tx.run("INSERT INTO reference (kind, field, value, uid) VALUES ('tag', 'digest', 'd', $1)", UNKNOWN),
      ],
      ['tag target', (tx) => tx.run('DELETE FROM tag_target')],
      ['tag target', (tx) => tx.run("UPDATE tag_target SET digest = 'sha256:0'")],
      [
        'tag target',
        (tx) => tx.run("INSERT INTO tag_target (repo, name, digest, uid) VALUES ($1, 'gone', 'd', $2)", repo, UNKNOWN),
      ],
      ['storage counter', (tx) => tx.run('UPDATE organization_storage SET bytes = bytes + 1')],
      ['storage counter', (tx) => tx.run('DELETE FROM organization_storage')],
    ];
    for (const [at, [problem, plant]] of damages.entries()) {
      test(`damage ${at + 1}: ${problem} is found and repaired`, async () => {
        await store.write(async (tx) => void (await plant(tx)));
        const found = await check('--blobs', 'skip');
        assert.equal(found.code, 1);
        assert.ok(found.counts[problem], `${problem} is not among ${Object.keys(found.counts)}`);
        assert.match(found.stderr, /wharf db check --repair/);
        const repaired = await check('--blobs', 'skip', '--repair');
        assert.equal(repaired.code, 0, JSON.stringify(repaired));
        await assertClean();
        await assertConsistent(store.reader);
      });
    }

    test('damage that cannot be derived is named with what to do', async () => {
      const twin = newUid(parseUid('organization', server.organization));
      const message = create(RepoSchema, { name: 'twin' });
      const parent = parseUid('organization', server.organization);
      await store.write((tx) => insert(tx, repos, { message, uid: twin, parent }, 1000));
      const row = await store.reader.get<{ body: Uint8Array; keys: string }>(
        'SELECT body, keys FROM resource WHERE uid = $1',
        repo,
      );
      const before = await store.reader.get<{ body: Uint8Array }>('SELECT body FROM resource WHERE uid = $1', twin);
      assert.ok(row && before);
      const setBody = (body: Uint8Array) =>
        store.write((tx) => tx.run('UPDATE resource SET body = $2 WHERE uid = $1', twin, body));

      // Two repos with the same name.
      await setBody(row.body);
      const duplicate = await check('--repair', '--blobs', 'skip');
      assert.equal(duplicate.code, 1);
      assert.ok(
        duplicate.differences.some((each) => each.problem === 'duplicate key' && each.uid === twin && each.advice),
      );
      await setBody(new Uint8Array([255, 255]));
      const undecodable = await check('--blobs', 'skip');
      assert.ok(undecodable.differences.some((each) => each.problem === 'undecodable' && each.uid === twin));
      await setBody(before.body);
      await check('--repair', '--blobs', 'skip');

      await store.write((tx) => tx.run('UPDATE resource SET parent = $2 WHERE uid = $1', twin, UNKNOWN));
      const orphan = await check('--blobs', 'skip');
      assert.ok(orphan.differences.some((each) => each.problem === 'parent' && each.uid === twin));
      await store.write((tx) => tx.run('UPDATE resource SET parent = $2 WHERE uid = $1', twin, parent));
      await assertClean();
    });

    test('missing and damaged blobs are found, by size and by digest', async () => {
      const hex = digestOf(LAYER).slice('sha256:'.length);
      const file = join(registryDirectory(server.dataLocation.dataDir), 'blobs/sha256', hex.slice(0, 2), hex);
      writeFileSync(file, 'A LAYER');
      assert.equal((await check('--blobs', 'size')).code, 0);
      const damaged = await check();
      assert.equal(damaged.code, 1);
      assert.deepEqual(
        damaged.differences.map(({ problem, uid }) => [problem, uid]),
        [['damaged blob', digestOf(LAYER)]],
      );
      rmSync(file);
      const missing = await check('--repair');
      assert.equal(missing.code, 1);
      assert.match(missing.differences[0]?.advice ?? '', /push the image again/);
      assert.deepEqual(
        missing.differences.map(({ problem }) => problem),
        ['missing blob'],
      );
      writeFileSync(file, LAYER);
      await assertClean();
    });

    test('concurrent writes are no differences', async () => {
      const [wire] = wires;
      assert.ok(wire);
      const api = wire.connect(server.url, server.token);
      let isOver = false;
      const write = async (writer: number): Promise<void> => {
        for (let turn = 0; !isOver; turn++) {
          const name = `group ${writer} ${turn}`;
          const group: Group = await api.call(createGroup, { parent: server.organization, group: { name } });
          await api.call(updateGroup, { group: { uid: group.uid, name: `${name} renamed` } });
          if (turn % 3 > 0) await api.call(deleteGroup, { uid: group.uid });
        }
      };
      const writers = Promise.all([write(1), write(2), write(3), write(4)]);
      for (let round = 0; round < 3; round++) assert.deepEqual((await check('--repair')).differences, []);
      isOver = true;
      await writers;
      api.close();
      await assertConsistent(store.reader);
    });

    test('db status shows the schema, the resources and the last check, and changes nothing', async () => {
      const { code, stdout, stderr } = await runInProcess(['db', 'status', '-o', 'json'], env);
      assert.equal(code, 0, stderr);
      const status = JSON.parse(stdout);
      assert.equal(status.database, database.name);
      assert.equal(status.schema, status.supportedSchema);
      assert.ok(status.bytes > 10_000);
      assert.ok(status.resources.group >= 1);
      assert.equal(status.lastCheck.differences, 0);
      assert.ok(
        status.indexes.some(
          (each: { kind: string; state: string }) => each.kind === 'repo' && each.state === 'complete',
        ),
      );
      const table = await runInProcess(['db', 'status'], env);
      assert.match(table.stdout, new RegExp(`${database.name} [0-9]`));
      assert.match(table.stdout, /repo +2 +complete/);
      assert.match(table.stdout, /^1 +foundation +\d{4}-/m);
    });
  });
}

test('db status and check refuse a directory without a database', async () => {
  for (const verb of ['status', 'check']) {
    const { code, stderr } = await runInProcess(['db', verb, '--data', '/nonexistent'], {});
    assert.equal(code, 1);
    assert.match(stderr, /no database in \/nonexistent/);
  }
});

const EXTRA_ENTRY = `INSERT INTO entry (list, sort, key, uid)
  SELECT min(id), 'name', 'extra', $1 FROM list WHERE kind = 'repo' AND n > 0`;

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
