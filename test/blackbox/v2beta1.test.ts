import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { forEachVersionPair } from '../pairs/all.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { databases } from '../support/databases.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { testV2beta1Name } from '../support/version-pairs.ts';
import { type Client, wires } from '../support/wires.ts';

const buf = fileURLToPath(new URL('../../node_modules/.bin/buf', import.meta.url));
const { createGroup, getGroup, listGroups, updateGroup, deleteGroup } = GroupsService.method;

// The names of methods do not depend on the database.
describe('v2beta1', () => {
  let server: TestServer;
  let store: Store;
  before(async () => {
    server = await startTestServer(databases[0] ?? assert.fail());
    store = await openStore(server.dataLocation);
  });
  after(async () => {
    await store.close();
    await server.remove();
  });

  for (const wire of wires) {
    describe(`over ${wire.name}`, () => {
      let api: Client;
      before(() => {
        api = wire.connect(server.url, server.token);
      });
      after(() => api.close());

      const beta = <M extends DescMethodUnary>(method: M, request: MessageInitShape<M['input']>) =>
        api.call(method, request, {
          token: server.token,
          id: `chainguard.platform.iam.v2beta1.GroupsService/${method.name}`,
        });

      test('v2beta1 reads and writes the same groups as v2, with the same events', async () => {
        const parent = server.organization;
        const made = await beta(createGroup, { parent, group: { name: `beta ${wire.name.toLowerCase()}` } });
        assert.deepEqual(await api.call(getGroup, { uid: made.uid }), made);
        const changed = await beta(updateGroup, { group: { uid: made.uid, description: 'changed' } });
        assert.deepEqual([changed.name, changed.description], [made.name, 'changed']);
        assert.deepEqual(await beta(getGroup, { uid: made.uid }), changed);
        await beta(deleteGroup, { uid: made.uid });
        await rejects(api.call(getGroup, { uid: made.uid }), Code.NOT_FOUND);
        const bodies = (await eventsAbout(store.reader, made.uid)).map(({ bodyType }) => bodyType);
        const names = ['Group', 'Group', 'DeleteGroupRequest'];
        assert.deepEqual(
          bodies,
          names.map((name) => `chainguard.platform.iam.${name}`),
        );
      });

      test('v2beta1 has the same pages and errors as v2', async () => {
        const parent = server.organization;
        for (const name of ['one', 'two'])
          await beta(createGroup, { parent, group: { name: `page ${name} ${wire.name.toLowerCase()}` } });
        const first = await beta(listGroups, { pageSize: 1 });
        const second = await api.call(listGroups, { pageSize: 1, pageToken: first.nextPageToken });
        assert.notEqual(second.groups[0]?.uid, first.groups[0]?.uid);
        assert.equal(second.totalCount, first.totalCount);
        await rejects(beta(listGroups, { skip: -1 }), Code.INVALID_ARGUMENT, ({ fields }) =>
          assert.deepEqual(fields, ['skip']),
        );
      });
    });
  }

  test('buf finds and calls v2beta1 by reflection', async () => {
    const url = `${server.url}/chainguard.platform.ping.v2beta1.PingService/Ping`;
    const { stdout } = await promisify(execFile)(buf, ['curl', '--http2-prior-knowledge', '--protocol=grpc', url]);
    assert.deepEqual(JSON.parse(stdout), { response: 'pong' });
  });

  test('the OpenAPI document has the same paths for v2beta1 and v2', async () => {
    const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const pathsOf = (version: string) => Object.keys(paths).filter((path) => path.split('/')[2] === version);
    assert.deepEqual(
      pathsOf('v2beta1'),
      pathsOf('v2').map((path) => path.replace('/v2/', '/v2beta1/')),
    );
    assert.ok(pathsOf('v1').length > 60);
  });
});

onEveryDatabaseAndWire('v2beta1 and v2 of one resource', (fixture) => {
  forEachVersionPair((pair) => testV2beta1Name(fixture, pair));
});
