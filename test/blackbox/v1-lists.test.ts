import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { newUid } from '../../src/base/uid.ts';
import {
  type Repo,
  RepoSchema,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { insertAll } from '../../src/resource/write.ts';
import { callerWith } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { type Bench, everywhere } from '../support/every-database-and-wire.ts';
import { withStore } from '../support/images.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

/** More than two pages of v2, which has 200 in one at most. */
const MANY = 450;

/** Puts repos past the rules of the API, which allow no long descriptions. Answers their uids in order. */
async function fill(server: TestServer, parent: string, description = '"quoted",\u2028]}'): Promise<string[]> {
  const drafts = Array.from({ length: MANY }, (_, i) => ({
    message: create(RepoSchema, { name: `repo-${MANY - i}`, description }),
    uid: newUid(parent),
    parent,
  }));
  await withStore(server, (store) => store.write((tx) => insertAll(tx, repos, drafts, 1_000)));
  return drafts.map(({ uid }) => uid).sort();
}

/** All of v2, page by page. */
async function walk({ api }: Bench, descendantsOf: string): Promise<Repo[]> {
  const found: Repo[] = [];
  let pageToken = '';
  do {
    const page = await api.call(ReposService.method.listRepos, { uidp: { descendantsOf }, pageSize: 90, pageToken });
    found.push(...page.repos);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return found;
}

everywhere('long lists of v1', (bench) => {
  test('a list has everything that the pages of v2 have, in their order', async () => {
    const group = await bench.newGroup();
    const [first, second] = [await bench.newGroup(group), await bench.newGroup(group)];
    await fill(bench.server, first);
    await fill(bench.server, second);
    const all = await walk(bench, group);
    assert.equal(all.length, 2 * MANY);

    const { items } = await bench.api.call(Registry.method.listRepos, { uidp: { descendantsOf: group } });
    assert.deepEqual(
      items.map(({ id, name, description }) => [id, name, description]),
      all.map(({ uid, name, description }) => [uid, name, description]),
    );

    const { items: inFirst } = await bench.api.call(Registry.method.listRepos, { uidp: { childrenOf: first } });
    assert.deepEqual(
      inFirst.map(({ id }) => id),
      all.map(({ uid }) => uid).filter((uid) => uid.startsWith(first)),
    );

    const { items: named } = await bench.api.call(Registry.method.listRepos, {
      uidp: { descendantsOf: group },
      name: 'repo-7',
    });
    assert.deepEqual(
      named.map(({ name }) => name),
      ['repo-7', 'repo-7'],
    );

    const narrow = bench.as(await (await callerWith(bench.server, 'viewer', second)).token());
    const { items: seen } = await narrow.call(Registry.method.listRepos, {});
    assert.deepEqual(
      seen.map(({ id }) => id),
      all.map(({ uid }) => uid).filter((uid) => uid.startsWith(second)),
    );
    const { items: none } = await narrow.call(Registry.method.listRepos, { uidp: { descendantsOf: first } });
    assert.deepEqual(none, []);
  });
});

for (const database of databases) {
  test(`a list is read no faster than its client reads, on ${database.name}`, async (t) => {
    const server = await startTestServer(database);
    t.after(server.remove);
    const [rest = assert.fail()] = wires;
    const api = rest.connect(server.url, server.token);
    // 13 MB, which is more than the sockets between the two hold.
    const uids = await fill(server, server.organization, 'x'.repeat(30_000));
    const last = uids.at(-1) ?? assert.fail();

    const request = get(`${server.url}/registry/v1/repos`, { headers: { authorization: `Bearer ${server.token}` } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await api.call(ReposService.method.deleteRepo, { uid: last });
    const { items } = JSON.parse(await text(response)) as { items: { id: string }[] };
    assert.deepEqual(
      items.map(({ id }) => id),
      uids.filter((uid) => uid !== last),
    );
  });
}
