import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { startServer } from '../../src/main.ts';
import { databases } from '../support/databases.ts';
import { silentLog, startServerOn, startTestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

const { createGroup, getGroup, listGroups } = GroupsService.method;
const DAY = 24 * 60 * 60 * 1000;

for (const database of databases) {
  describe(`restarts on ${database.name}`, () => {
    test('a second start keeps organization, owner, groups and page tokens', async (t) => {
      const first = await startTestServer(database, { env: { WHARF_ORG: 'harbour' } });
      t.after(() => first.dataLocation.remove());
      const [rest] = wires;
      assert.ok(rest);
      const before = rest.connect(first.url, first.token);
      const organization = await before.call(getGroup, { uid: first.organization });
      assert.equal(organization.name, 'harbour');
      for (const name of ['one', 'two'])
        await before.call(createGroup, { parent: first.organization, group: { name } });
      const page = await before.call(listGroups, { pageSize: 1, orderBy: 'name' });
      await first.stop();
      await assert.rejects(before.call(listGroups));

      const second = await startServerOn(first.dataLocation, { env: { WHARF_ORG: 'another name' } });
      t.after(() => second.stop());
      assert.equal(second.organization, first.organization);
      // The access token and the page token from before the restart are still valid.
      const after = rest.connect(second.url, first.token);
      assert.deepEqual(await after.call(getGroup, { uid: first.organization }), organization);
      const nextPage = await after.call(listGroups, { pageSize: 1, orderBy: 'name', pageToken: page.nextPageToken });
      assert.deepEqual(
        nextPage.groups.map(({ name }) => name),
        ['one'],
      );
      assert.equal(nextPage.totalCount, 3n);
    });

    test('the owner file is readable only by its owner', async (t) => {
      const server = await startTestServer(database);
      t.after(() => server.remove());
      const { mode } = await stat(join(server.dataLocation.dataDir, 'owner.json'));
      assert.equal(mode & 0o777, 0o600);
    });

    test('an expired page token starts over without an error', async (t) => {
      let now = Date.now();
      const server = await startTestServer(database, { clock: () => now });
      t.after(() => server.remove());
      const [rest] = wires;
      const api = rest?.connect(server.url, undefined);
      assert.ok(api);
      const freshToken = async () => ({
        token: await mintOwnerToken(server.dataLocation.dataDir, { clock: () => now }),
      });
      for (const name of ['one', 'two', 'three']) {
        await api.call(createGroup, { parent: server.organization, group: { name } }, await freshToken());
      }
      const first = await api.call(listGroups, { pageSize: 2 }, await freshToken());
      now += 3 * DAY + 1;
      const again = await api.call(listGroups, { pageSize: 2, pageToken: first.nextPageToken }, await freshToken());
      assert.deepEqual(again.groups, first.groups);
      now -= 2;
      const next = await api.call(listGroups, { pageSize: 2, pageToken: first.nextPageToken }, await freshToken());
      assert.notDeepEqual(next.groups, first.groups);
    });

    test('two servers that start on one empty database agree on the organization', {
      skip: database.name === 'SQLite',
    }, async (t) => {
      const dataLocation = await database.createDataLocation();
      t.after(() => dataLocation.remove());
      const other = await database.createDataLocation();
      t.after(() => other.remove());
      // Servers of one database share the key that encrypts its secrets.
      const shared = { WHARF_MASTER_KEY: '00'.repeat(32) };
      const start = (data: string) =>
        startServer(loadConfig({ listen: '127.0.0.1:0', data, databaseUrl: dataLocation.databaseUrl }, shared), {
          log: silentLog,
        });
      const servers = await Promise.all([start(dataLocation.dataDir), start(other.dataDir)]);
      t.after(() => Promise.all(servers.map((server) => server.stop())));
      const organizations = servers.map(({ organization }) => organization.uid);
      assert.equal(new Set(organizations).size, 1);
      assert.deepEqual(servers.map(({ firstStart }) => firstStart).sort(), [false, true]);
      // Only the server that created the organization has the key of the owner.
      const owners = await Promise.all([dataLocation.dataDir, other.dataDir].map(readOwner));
      assert.equal(owners.filter(Boolean).length, 1);
    });
  });
}
