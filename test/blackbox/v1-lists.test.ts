import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { newUid, parseUid } from '../../src/base/uid.ts';
import {
  type Repo,
  RepoSchema,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { insertAll } from '../../src/resource/write.ts';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { withStore } from '../support/images.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

/** More than two pages of v2, which have at most 200 items. */
const MANY = 450;

/** Inserts repos into the database, because the API allows no long descriptions. Returns their uids in order. */
async function fill(server: TestServer, group: string, description = '"quoted",\u2028]}'): Promise<string[]> {
  const parent = parseUid('group', group);
  const drafts = Array.from({ length: MANY }, (_, i) => ({
    message: create(RepoSchema, { name: `repo-${MANY - i}`, description }),
    uid: newUid(parent),
    parent,
  }));
  await withStore(server, (store) => store.write((tx) => insertAll(tx, repos, drafts, 1_000)));
  return drafts.map(({ uid }) => uid).sort();
}

/** Reads all pages of v2. */
async function readAllPages({ api }: ApiFixture, descendantsOf: string): Promise<Repo[]> {
  const found: Repo[] = [];
  let pageToken = '';
  do {
    const page = await api.call(ReposService.method.listRepos, { uidp: { descendantsOf }, pageSize: 90, pageToken });
    found.push(...page.repos);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return found;
}

onEveryDatabaseAndWire('long lists of v1', (fixture) => {
  test('a list contains all items of the pages of v2, in the same order', async () => {
    const group = await fixture.newGroup();
    const [first, second] = [await fixture.newGroup(group), await fixture.newGroup(group)];
    await fill(fixture.server, first);
    await fill(fixture.server, second);
    const all = await readAllPages(fixture, group);
    assert.equal(all.length, 2 * MANY);

    const { items } = await fixture.api.call(Registry.method.listRepos, { uidp: { descendantsOf: group } });
    assert.deepEqual(
      items.map(({ id, name, description }) => [id, name, description]),
      all.map(({ uid, name, description }) => [uid, name, description]),
    );

    const { items: inFirst } = await fixture.api.call(Registry.method.listRepos, { uidp: { childrenOf: first } });
    assert.deepEqual(
      inFirst.map(({ id }) => id),
      all.map(({ uid }) => uid).filter((uid) => uid.startsWith(first)),
    );

    const { items: named } = await fixture.api.call(Registry.method.listRepos, {
      uidp: { descendantsOf: group },
      name: 'repo-7',
    });
    assert.deepEqual(
      named.map(({ name }) => name),
      ['repo-7', 'repo-7'],
    );

    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', second)).token());
    const { items: seen } = await viewer.call(Registry.method.listRepos, {});
    assert.deepEqual(
      seen.map(({ id }) => id),
      all.map(({ uid }) => uid).filter((uid) => uid.startsWith(second)),
    );
    const { items: none } = await viewer.call(Registry.method.listRepos, { uidp: { descendantsOf: first } });
    assert.deepEqual(none, []);
  });
});

for (const database of databases) {
  test(`a list is read from the database no faster than its client reads it, on ${database.name}`, async (t) => {
    const server = await startTestServer(database);
    t.after(server.remove);
    const [rest = assert.fail()] = wires;
    const api = rest.connect(server.url, server.token);
    // 13 MB, which is more than the buffers of the sockets.
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
