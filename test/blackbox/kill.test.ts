import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Group, GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { spawnServer } from '../support/process.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, updateGroup, deleteGroup } = GroupsService.method;
const WRITES = 2000;
const WRITERS = 16;
const KILLS = 8;

/** The acknowledged state of a group. */
interface GroupState {
  name: string;
  changes: number;
  deleted: boolean;
}

for (const database of databases) {
  describe(`kill -9 on ${database.name}`, () => {
    test(`${WRITES} writes and ${KILLS} kills lose no acknowledged change and leave no partial one`, {
      timeout: 600_000,
    }, async (t) => {
      const dataLocation = await database.createDataLocation();
      t.after(() => dataLocation.remove());
      const groupStates = new Map<string, GroupState>();
      /** Groups whose last change got no response. It was committed or not, but not partly. */
      const uncertain = new Set<string>();
      let acknowledged = 0;
      let started = 0;

      for (let round = 0; round <= KILLS; round++) {
        const server = await spawnServer(dataLocation);
        t.after(() => server.kill());
        const owner = await readOwner(dataLocation.dataDir);
        assert.ok(owner);
        const token = await mintOwnerToken(dataLocation.dataDir);
        const isLast = round === KILLS;
        const target = isLast ? WRITES : Math.ceil((WRITES * (round + 1)) / (KILLS + 1));
        const { process: child } = server;
        let isKilled = false;
        // Without a server, or after the time limit, the writers would retry forever.
        const isRunning = () => !isKilled && !t.signal.aborted && child.exitCode === null && child.signalCode === null;

        const writers = Array.from({ length: WRITERS }, async (_, w) => {
          const wire = wires[w % wires.length];
          assert.ok(wire);
          const api = wire.connect(server.url, token);
          try {
            while (isRunning() && acknowledged < target) await write(api, owner.organization);
          } finally {
            api.close();
          }
        });
        const done = Promise.all(writers);
        if (!isLast) {
          // In the middle of the round, with writes in progress.
          const middle = target - WRITES / (KILLS + 1) / 2;
          while (isRunning() && acknowledged < middle) await Promise.race([done, delay(1)]);
          assert.ok(isRunning(), 'the server has ended by itself');
          isKilled = true;
          await server.kill();
        }
        await done;
        if (isLast) assert.equal(await server.stop(), 0);
      }

      async function write(api: Client, parent: string): Promise<void> {
        const turn = started++;
        const [uid, state] = turn % 4 === 0 ? [] : (pick(turn) ?? []);
        try {
          if (uid === undefined || state === undefined) {
            const group: Group = await api.call(createGroup, { parent, group: { name: `group ${turn}` } });
            groupStates.set(group.uid, { name: group.name, changes: 1, deleted: false });
          } else if (turn % 4 === 3) {
            uncertain.add(uid);
            await api.call(deleteGroup, { uid });
            state.deleted = true;
            state.changes++;
            uncertain.delete(uid);
          } else {
            uncertain.add(uid);
            const name = `group ${turn} renamed`;
            await api.call(updateGroup, { group: { uid, name } });
            state.name = name;
            state.changes++;
            uncertain.delete(uid);
          }
          acknowledged++;
        } catch (error) {
          // Error responses are bugs. Broken connections are expected.
          if (error instanceof CallError && error.code !== 14 && error.code !== 1) throw error;
        }
      }

      /** Returns a group that no other writer changes. */
      function pick(turn: number): [string, GroupState] | undefined {
        const free = [...groupStates].filter(([uid, state]) => !state.deleted && !uncertain.has(uid));
        return free[turn % Math.max(1, free.length)];
      }

      const store = await openStore(dataLocation);
      t.after(() => store.close());
      await assertConsistent(store.reader);
      const rows = await store.reader.all<{ uid: string }>("SELECT uid FROM resource WHERE kind = 'group'");
      const existing = new Set(rows.map(({ uid }) => uid));
      const events = new Map<string, number>();
      for (const { subject, n } of await store.reader.all<{ subject: string; n: number }>(
        'SELECT subject, count(*) AS n FROM outbox GROUP BY subject',
      )) {
        events.set(subject, n);
      }
      for (const [uid, state] of groupStates) {
        if (uncertain.has(uid)) continue;
        assert.equal(
          existing.has(uid),
          !state.deleted,
          `${uid} was acknowledged as ${state.deleted ? 'deleted' : 'existing'}`,
        );
        assert.equal(events.get(uid), state.changes, `${uid} has an event for each change`);
      }
      // A change that was committed without a response has its event too.
      for (const uid of existing) if (uid.includes('/')) assert.ok((events.get(uid) ?? 0) >= 1, `${uid} has no event`);
      t.diagnostic(
        `${acknowledged} acknowledged, ${started - acknowledged} cut off or refused, ${groupStates.size} groups`,
      );
    });
  });
}
