import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { databases, type Home } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { spawnServer } from '../support/process.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, updateGroup } = GroupsService.method;

/** The whole of it on SQLite; on PostgreSQL, which delivery-servers.test.ts tries further, some. */
const trials = [
  { database: databases[0], changes: 2000, kills: 10 },
  { database: databases[1], changes: 400, kills: 2 },
];
const SUBSCRIPTIONS = 20;
const WRITERS = 16;
/** More bad luck than this in a row would end the attempts for an event, which is another story. */
const MOST_FAILURES = 8;

const env = {
  WHARF_ALLOW_INSECURE_SINKS: 'true',
  WHARF_DELIVERY_SCHEDULE: `0s${',20ms'.repeat(19)}`,
  WHARF_DELIVERY_TIMEOUT: '250ms',
  WHARF_LOG_LEVEL: 'info',
};

for (const { database, changes, kills } of trials) {
  if (!database) continue;
  describe(`delivery on ${database.name}`, () => {
    test(`${changes} changes, ${kills} kills and a sink that is bad half of the time: all arrive, in order`, {
      timeout: 180_000,
    }, async (t) => {
      const home = await database.home();
      t.after(() => home.remove());
      const sink = await startSink();
      t.after(() => sink.close());
      const bad = misbehave(sink);

      /** The descriptions that changes were acknowledged with, in their order, for each group. */
      const acknowledged = new Map<string, string[]>();
      const places: string[] = [];
      let count = 0;
      let turn = 0;
      let cutOff = 0;
      for (let round = 0; round <= kills; round++) {
        const server = await spawnServer(home, env);
        t.after(() => server.kill());
        const owner = await readOwner(home.dataDir);
        assert.ok(owner);
        const token = await mintOwnerToken(home.dataDir);
        const clients = wires.map((wire) => wire.connect(server.url, token));
        const [rest] = clients;
        assert.ok(rest);
        for (let i = places.length; i < SUBSCRIPTIONS; i++) {
          const place = { parent: owner.organization, group: { name: `place ${i}` } };
          const { uid } = await rest.call(createGroup, place);
          await subscribe('REST', { url: server.url, token }, uid, sink.url);
          places.push(uid);
        }
        const target = Math.ceil((changes * (round + 1)) / (kills + 1));
        let dead = false;
        const writing = Array.from({ length: WRITERS }, async (_, writer) => {
          const api = clients[writer % clients.length];
          while (!dead && count < target) if (api) await write(api, writer);
        });
        const done = Promise.all(writing);
        if (round < kills) {
          // Somewhere in the middle of what this round would write: wherever it happens to be then.
          while (count < target - changes / (kills + 1) / 2) await Promise.race([done, delay(1)]);
          dead = true;
          await server.kill();
          await done;
        } else {
          await done;
          await drained(home);
          assert.equal(await server.stop(), 0);
        }
        for (const client of clients) client.close();
      }

      /** Each writer has groups of its own, so that the order of its changes is known. */
      async function write(api: Client, writer: number): Promise<void> {
        const n = turn++;
        const own = [...acknowledged.keys()].filter((_, i) => i % WRITERS === writer);
        const uid = own[n % Math.max(1, own.length)];
        const description = `change ${n}`;
        try {
          if (n % 10 === 9) {
            // A change that is made and rolled back: the name is taken, which shows only when the rest is written.
            const group = { name: 'place 0', description: `refused ${n}` };
            await api.call(createGroup, { parent: places[0]?.replace(/\/\w+$/, '') ?? '', group });
            assert.fail('there is a group of this name');
          } else if (uid === undefined || n % 4 === 0) {
            const parent = places[n % places.length] ?? '';
            const created = await api.call(createGroup, { parent, group: { name: `group ${n}`, description } });
            acknowledged.set(created.uid, [description]);
          } else {
            await api.call(updateGroup, { group: { uid, description } });
            acknowledged.get(uid)?.push(description);
          }
          count++;
        } catch (error) {
          if (!(error instanceof CallError)) cutOff++;
          else if (
            error.code !== Code.ALREADY_EXISTS &&
            error.code !== Code.UNAVAILABLE &&
            error.code !== Code.CANCELLED
          ) {
            throw error;
          }
        }
      }

      const store = await openStore(home);
      t.after(() => store.close());
      const committed = new Map(
        (await store.reader.all<{ id: number; event_id: string }>('SELECT id, event_id FROM outbox')).map((row) => [
          row.event_id,
          row.id,
        ]),
      );
      const arrived = new Map<string, string[]>();
      const latest = new Map<string, number>();
      const seen = new Set<string>();
      for (const { attributes, body } of bad.taken) {
        const { id = '', subject = '' } = attributes;
        const place = committed.get(id);
        assert.ok(place !== undefined, 'nothing arrives that was not committed');
        assert.ok(!body.includes('refused'), 'nothing arrives that was rolled back');
        if (seen.has(id)) continue;
        seen.add(id);
        assert.ok(place > (latest.get(subject) ?? 0), `the events about ${subject} arrive in their order`);
        latest.set(subject, place);
        arrived.set(subject, [...(arrived.get(subject) ?? []), String(JSON.parse(body).body.description)]);
      }
      for (const [uid, descriptions] of acknowledged) {
        const known = new Set(descriptions);
        // What was cut off may have been committed, and then arrives too.
        const got = arrived.get(uid)?.filter((description) => known.has(description));
        assert.deepEqual(got, descriptions, `every change of ${uid} that was acknowledged has arrived`);
      }
      t.diagnostic(
        `${count} acknowledged, ${cutOff} cut off; ${sink.received.length} requests, ${bad.taken.length} taken, ${bad.taken.length - seen.size} of them again`,
      );
    });
  });
}

/** Makes a sink answer 500, hang or drop the connection half of the time; answers what it has taken. */
function misbehave(sink: TestSink): { readonly taken: TestSink['received'] } {
  const taken: TestSink['received'] = [];
  const failures = new Map<string, number>();
  let seed = 1;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const ways: readonly ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(500).end('no'),
    (response) => response.socket?.destroy(),
    (response) => response.writeHead(500).end('no'),
    (response) => response.socket?.destroy(),
    () => {},
  ];
  sink.answer = (request, response) => {
    const { id = '' } = request.attributes;
    const soFar = failures.get(id) ?? 0;
    if (random() < 0.5 || soFar >= MOST_FAILURES) {
      taken.push(request);
      return false;
    }
    failures.set(id, soFar + 1);
    ways[Math.floor(random() * ways.length)]?.(response);
    return true;
  };
  return { taken };
}

/** Waits until nothing is on its way any more. */
async function drained(home: Home): Promise<void> {
  const store = await openStore(home);
  const waiting = `SELECT (SELECT count(*) FROM outbox WHERE expires IS NULL)
    + (SELECT count(*) FROM delivery WHERE state = 'pending') AS n`;
  try {
    await until(
      async () => {
        // Looking costs the server time.
        await delay(100);
        return (await store.reader.get<{ n: number }>(waiting))?.n;
      },
      (n) => n === 0,
      90_000,
    );
  } finally {
    await store.close();
  }
}
