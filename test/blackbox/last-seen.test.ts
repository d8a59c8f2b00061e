import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService, type Identity } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { callerWith } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { startTestServer } from '../support/server.ts';
import { wires } from '../support/wires.ts';

const MINUTE = 60_000;

for (const database of databases) {
  test(`last_seen_time follows use, once a minute, and is no update, on ${database.name}`, async (t) => {
    const start = Date.now();
    let now = start;
    const server = await startTestServer(database, { clock: () => now });
    t.after(() => server.remove());
    const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    const caller = await callerWith(server, 'viewer', server.organization);
    const token = await caller.token();
    const visit = () => api.call(GroupsService.method.listGroups, {}, { token });
    const read = (): Promise<Identity> => api.call(IdentitiesService.method.getIdentity, { uid: caller.uid });
    const seen = async () => timestampMs((await read()).lastSeenTime ?? assert.fail()) - start;
    /** The note is written behind the answer. */
    const until = async (expected: number) => {
      while ((await seen()) !== expected) await nextTurn();
    };

    const created = await read();
    await until(0);
    now = start + MINUTE;
    await visit();
    await until(MINUTE);
    now = start + 2 * MINUTE - 1;
    await visit();
    now = start + 2 * MINUTE;
    await visit();
    // Never what was less than a minute after the note before.
    await until(2 * MINUTE);
    const after = await read();
    assert.deepEqual(after.updateTime, created.updateTime);
    assert.deepEqual({ ...after, lastSeenTime: created.lastSeenTime }, created);
  });
}
