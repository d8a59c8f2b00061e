import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService, type Identity } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { Identities } from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { startTestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

const MINUTE = 60_000;

for (const database of databases) {
  test(`last_seen_time is updated once a minute and does not change update_time, on ${database.name}`, async (t) => {
    const start = Date.now();
    let now = start;
    const server = await startTestServer(database, { clock: () => now });
    t.after(() => server.remove());
    const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    const caller = await callerWithRole(server, 'viewer', server.organization);
    const token = await caller.token();
    const useToken = () => api.call(GroupsService.method.listGroups, {}, { token });
    const read = (): Promise<Identity> => api.call(IdentitiesService.method.getIdentity, { uid: caller.uid });
    const lastSeen = async () => timestampMs((await read()).lastSeenTime ?? assert.fail()) - start;
    /** The time is written after the response. */
    const waitForLastSeen = async (expected: number) => {
      while ((await lastSeen()) !== expected) await nextTurn();
    };

    const created = await read();
    assert.equal(created.lastSeenTime, undefined, 'it has never called');
    const [v1] = (await api.call(Identities.method.list, { id: caller.uid })).items;
    assert.deepEqual([v1?.id, v1?.lastSeen], [caller.uid, undefined]);
    await useToken();
    while ((await read()).lastSeenTime === undefined) await nextTurn();
    await waitForLastSeen(0);
    now = start + MINUTE;
    await useToken();
    await waitForLastSeen(MINUTE);
    now = start + 2 * MINUTE - 1;
    await useToken();
    now = start + 2 * MINUTE;
    await useToken();
    // The use less than a minute after the last recorded one is not recorded.
    await waitForLastSeen(2 * MINUTE);
    const after = await read();
    assert.deepEqual(after.updateTime, created.updateTime);
    const { lastSeenTime: _, ...unchanged } = after;
    assert.deepEqual(unchanged, created);
  });
}
