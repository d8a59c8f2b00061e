import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Group,
  GroupsService,
  type ListGroupsResponse,
} from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroup, deleteGroup, listGroups, updateGroup } = GroupsService.method;
const GROUPS = 1000;
const ORDERS = [
  '',
  'uid desc',
  'name',
  'name desc',
  'create_time',
  'created_at desc',
  'update_time desc',
  'name desc, create_time',
];

for (const database of databases) {
  describe(`paging through ${GROUPS} groups on ${database.name}`, () => {
    let server: TestServer;
    let top: string;
    const tree: Group[] = [];

    before(async () => {
      server = await startTestServer(database);
      const [, grpc] = wires;
      const api = grpc?.connect(server.url, server.token);
      assert.ok(api);
      const root = await api.call(createGroup, { parent: server.organization, group: { name: 'top' } });
      top = root.uid;
      // Ten batches. The groups of each have parents in the batches before it.
      for (let made = 0; made < GROUPS; made += 100) {
        const batch = Array.from({ length: 100 }, (_, i) => {
          const parent = made === 0 ? top : (tree[((made + i) * 13) % made]?.uid ?? top);
          return api.call(createGroup, { parent, group: { name: `group ${(made + i) % 250} of ${made}` } });
        });
        tree.push(...(await Promise.all(batch)));
      }
      api.close();
    });
    after(() => server.remove());

    for (const wire of wires) {
      test(`over ${wire.name}: pages contain each group exactly once in every order, with an exact total`, async () => {
        const api = wire.connect(server.url, server.token);
        for (const orderBy of ORDERS) {
          const found: Group[] = [];
          await follow(api, { orderBy, pageSize: 190, uidp: { descendantsOf: top } }, ({ groups, totalCount }) => {
            assert.equal(totalCount, BigInt(GROUPS));
            found.push(...groups);
          });
          assert.equal(new Set(found.map(({ uid }) => uid)).size, GROUPS, orderBy);
          assert.equal(found.length, GROUPS, orderBy);
          if (orderBy.startsWith('name')) {
            const names = found.map(({ name }) => name);
            const sorted = [...names].sort();
            assert.deepEqual(names, orderBy === 'name' ? sorted : sorted.reverse());
          }
        }
        api.close();
      });
    }

    test('skip starts at the same position as paging', async () => {
      const api = wires[0]?.connect(server.url, server.token);
      assert.ok(api);
      const uidp = { descendantsOf: top };
      const all: string[] = [];
      await follow(api, { orderBy: 'name', pageSize: 200, uidp }, ({ groups }) =>
        all.push(...groups.map((g) => g.uid)),
      );
      for (const skip of [0, 1, 499, 990, 1000, 5000]) {
        const page: ListGroupsResponse = await api.call(listGroups, { orderBy: 'name', pageSize: 20, skip, uidp });
        assert.deepEqual(
          page.groups.map(({ uid }) => uid),
          all.slice(skip, skip + 20),
        );
        assert.equal(page.skipped, skip);
        assert.equal(page.totalCount, BigInt(GROUPS));
      }
    });

    for (const wire of wires) {
      test(`over ${wire.name}: a request that repeats skip with each page token skips once`, async () => {
        const api = wire.connect(server.url, server.token);
        const request = { orderBy: 'name', pageSize: 200, uidp: { descendantsOf: top } };
        const all: string[] = [];
        await follow(api, request, ({ groups }) => all.push(...groups.map(({ uid }) => uid)));
        const found: string[] = [];
        await follow(api, { ...request, skip: 333 }, ({ groups, skipped, totalCount }) => {
          assert.equal(skipped, 333);
          assert.equal(totalCount, BigInt(GROUPS));
          found.push(...groups.map(({ uid }) => uid));
        });
        assert.deepEqual(found, all.slice(333));

        // The sum of all skips is reported, also by pages that skip nothing.
        const first = await api.call(listGroups, { ...request, skip: 10 });
        const second = await api.call(listGroups, { ...request, skip: 110, pageToken: first.nextPageToken });
        const third = await api.call(listGroups, { ...request, pageToken: second.nextPageToken });
        assert.deepEqual([first.skipped, second.skipped, third.skipped], [10, 110, 110]);
        assert.deepEqual([second.groups[0]?.uid, third.groups[0]?.uid], [all[310], all[510]]);
        api.close();
      });
    }

    test('while groups are created and deleted, pages contain no group twice and all unchanged ones', async () => {
      const api = wires[1]?.connect(server.url, server.token);
      assert.ok(api);
      const untouched = new Set(tree.map(({ uid }) => uid));
      for (const orderBy of ORDERS) {
        const seen = new Set<string>();
        let page = 0;
        await follow(api, { orderBy, pageSize: 100, uidp: { descendantsOf: top } }, async ({ groups }) => {
          for (const { uid } of groups) {
            assert.ok(!seen.has(uid), `${uid} came twice in order ${orderBy || 'uid'}`);
            seen.add(uid);
          }
          // Before the next page, groups are created before and after the cursor, and deleted again.
          const names = [`aaa ${page}`, `group 1 ${page}`, `zzz ${page}`];
          const made = await Promise.all(names.map((name) => api.call(createGroup, { parent: top, group: { name } })));
          await Promise.all(
            made.slice(1).map(({ uid }) => api.call(updateGroup, { group: { uid, description: 'x' } })),
          );
          await Promise.all(made.map(({ uid }) => api.call(deleteGroup, { uid })));
          page++;
        });
        for (const uid of untouched) assert.ok(seen.has(uid), `${uid} is missing in order ${orderBy || 'uid'}`);
      }
      api.close();
    });

    async function follow(api: Client, request: object, visit: (page: ListGroupsResponse) => unknown): Promise<void> {
      let pageToken = '';
      do {
        const page: ListGroupsResponse = await api.call(listGroups, { ...request, pageToken });
        await visit(page);
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
    }
  });
}
