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

/** What a writer was told, per group: its fate as acknowledged. */
interface Acknowledged {
  name: string;
  changes: number;
  deleted: boolean;
}

for (const database of databases) {
  describe(`kill -9 on ${database.name}`, () => {
    test(`${WRITES} writes and ${KILLS} kills lose nothing and leave nothing half-written`, {
      timeout: 120_000,
    }, async (t) => {
      const home = await database.home();
      t.after(() => home.remove());
      const fates = new Map<string, Acknowledged>();
      /** Groups whose last change was cut off: it may have happened or not, but not half. */
      const uncertain = new Set<string>();
      let acknowledged = 0;
      let started = 0;

      for (let round = 0; round <= KILLS; round++) {
        const server = await spawnServer(home);
        t.after(() => server.kill());
        const owner = await readOwner(home.dataDir);
        assert.ok(owner);
        const token = await mintOwnerToken(home.dataDir);
        const isLast = round === KILLS;
        const target = isLast ? WRITES : Math.ceil((WRITES * (round + 1)) / (KILLS + 1));
        let dead = false;

        const writers = Array.from({ length: WRITERS }, async (_, w) => {
          const wire = wires[w % wires.length];
          assert.ok(wire);
          const api = wire.connect(server.url, token);
          try {
            while (!dead && acknowledged < target) await write(api, owner.organization);
          } finally {
            api.close();
          }
        });
        const done = Promise.all(writers);
        if (!isLast) {
          // Somewhere in the middle of what this round would write: wherever it happens to be then.
          while (acknowledged < target - WRITES / (KILLS + 1) / 2) await Promise.race([done, delay(1)]);
          dead = true;
          await server.kill();
        }
        await done;
        if (isLast) assert.equal(await server.stop(), 0);
      }

      async function write(api: Client, parent: string): Promise<void> {
        const turn = started++;
        const [uid, fate] = turn % 4 === 0 ? [] : (pick(turn) ?? []);
        try {
          if (uid === undefined || fate === undefined) {
            const group: Group = await api.call(createGroup, { parent, group: { name: `group ${turn}` } });
            fates.set(group.uid, { name: group.name, changes: 1, deleted: false });
          } else if (turn % 4 === 3) {
            uncertain.add(uid);
            await api.call(deleteGroup, { uid });
            fate.deleted = true;
            fate.changes++;
            uncertain.delete(uid);
          } else {
            uncertain.add(uid);
            const name = `group ${turn} renamed`;
            await api.call(updateGroup, { group: { uid, name } });
            fate.name = name;
            fate.changes++;
            uncertain.delete(uid);
          }
          acknowledged++;
        } catch (error) {
          // Answered errors are bugs; a connection that broke is the point of this test.
          if (error instanceof CallError && error.code !== 14 && error.code !== 1) throw error;
        }
      }

      /** A group that nobody else is writing to. */
      function pick(turn: number): [string, Acknowledged] | undefined {
        const free = [...fates].filter(([uid, fate]) => !fate.deleted && !uncertain.has(uid));
        return free[turn % Math.max(1, free.length)];
      }

      const store = await openStore(home);
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
      for (const [uid, fate] of fates) {
        if (uncertain.has(uid)) continue;
        assert.equal(
          existing.has(uid),
          !fate.deleted,
          `${uid} was acknowledged as ${fate.deleted ? 'deleted' : 'there'}`,
        );
        assert.equal(events.get(uid), fate.changes, `${uid} has an event for each change`);
      }
      // Whatever was committed without an answer has its event too.
      for (const uid of existing) if (uid.includes('/')) assert.ok((events.get(uid) ?? 0) >= 1, `${uid} has no event`);
      t.diagnostic(`${acknowledged} acknowledged, ${started - acknowledged} cut off or refused, ${fates.size} groups`);
    });
  });
}
