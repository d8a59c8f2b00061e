import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, updateGroup } = GroupsService.method;

/** The full load on SQLite. Less on PostgreSQL, because delivery-servers.test.ts tests it too. */
const loads = [
  { database: databases[0], changes: 2000, kills: 10 },
  { database: databases[1], changes: 400, kills: 2 },
];
/**
 * All requests compete for one CPU of the server, so the latency of a request grows with the number of subscriptions.
 * It must stay well below the timeout, on a busy machine too.
 */
const SUBSCRIPTIONS = 10;
const WRITERS = 16;
/** The server gives up an event after 20 attempts. Fewer failures leave attempts for timeouts on a busy machine. */
const MAX_FAILURES = 8;
/** Of the failed requests, one in this many gets no response, and lasts until the timeout. */
const HANG_ONE_IN = 20;
/** How many requests the sink gets from each server before the writers start, to show that delivery resumes. */
const RESUMED_REQUESTS = 10;
/** How long to wait for progress. The number of changes and the machine decide how long a whole phase takes. */
const STALL_MS = 60_000;
const PHASE_MS = 600_000;

const env = {
  WHARF_ALLOW_INSECURE_SINKS: 'true',
  WHARF_DELIVERY_SCHEDULE: `0s${',1ms'.repeat(19)}`,
  // Leases last three times as long. The next server waits for those of a killed one.
  WHARF_DELIVERY_TIMEOUT: '500ms',
  WHARF_LOG_LEVEL: 'info',
  // All subscriptions have the same sink, and this test is about faults and not about limits.
  WHARF_SINK_RATE: '100000',
  WHARF_NEW_SINK_INTERVAL: '0s',
};

for (const { database, changes, kills } of loads) {
  if (!database) continue;
  describe(`delivery with a sink that fails half of the time, on ${database.name}`, () => {
    /** The descriptions of the acknowledged changes of each group, in order. */
    const acknowledged = new Map<string, string[]>();
    const parents: string[] = [];
    let dataLocation: DataLocation;
    let store: Store | undefined;
    let server: ServerProcess | undefined;
    let sink: FailingSink;
    let count = 0;
    let started = 0;
    let cutOff = 0;
    before(async () => {
      dataLocation = await database.createDataLocation();
      sink = failHalfOfRequests(await startSink());
    });
    after(async () => {
      await server?.kill();
      await store?.close();
      await sink.close();
      await dataLocation.remove();
    });

    test(`${changes} changes are written while the server is killed ${kills} times`, {
      timeout: PHASE_MS,
    }, async (t) => {
      for (let round = 0; round <= kills; round++) {
        server = await spawnServer(dataLocation, env);
        const { url, process: child } = server;
        const owner = await readOwner(dataLocation.dataDir);
        assert.ok(owner);
        const token = await mintOwnerToken(dataLocation.dataDir);
        const clients = wires.map((wire) => wire.connect(url, token));
        const [rest] = clients;
        assert.ok(rest);
        const requestsBefore = sink.requests();
        for (let i = parents.length; i < SUBSCRIPTIONS; i++) {
          const request = { parent: owner.organization, group: { name: `parent ${i}` } };
          const { uid } = await rest.call(createGroup, request);
          await subscribe('REST', { url, token }, uid, sink.url);
          parents.push(uid);
        }
        await pollUntil(
          async () => sink.requests() - requestsBefore,
          (requests) => requests >= RESUMED_REQUESTS,
          STALL_MS,
        );
        const target = Math.ceil((changes * (round + 1)) / (kills + 1));
        let isKilled = false;
        // Without a server, or after the time limit, the writers would retry forever.
        const isRunning = () => !isKilled && !t.signal.aborted && child.exitCode === null && child.signalCode === null;
        const writers = Array.from({ length: WRITERS }, async (_, writer) => {
          const api = clients[writer % clients.length];
          while (isRunning() && count < target) if (api) await write(api, writer);
        });
        const written = Promise.all(writers);
        if (round < kills) {
          // In the middle of the round, with writes and deliveries in progress.
          const middle = target - changes / (kills + 1) / 2;
          while (isRunning() && count < middle) await Promise.race([written, delay(1)]);
          assert.ok(isRunning(), 'the server has ended by itself');
          isKilled = true;
          await server.kill();
        }
        await written;
        for (const client of clients) client.close();
      }
    });

    /** Each writer changes groups of its own, so that the order of the changes of a group is known. */
    async function write(api: Client, writer: number): Promise<void> {
      const n = started++;
      const own = [...acknowledged.keys()].filter((_, i) => i % WRITERS === writer);
      const uid = own[n % Math.max(1, own.length)];
      const description = `change ${n}`;
      try {
        if (n % 10 === 9) {
          // Rolled back: that the name is taken is found only after the other rows are written.
          const group = { name: 'parent 0', description: `refused ${n}` };
          await api.call(createGroup, { parent: parents[0]?.replace(/\/\w+$/, '') ?? '', group });
          assert.fail('a second group with this name was created');
        } else if (uid === undefined || n % 4 === 0) {
          const parent = parents[n % parents.length] ?? '';
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

    test('the last server delivers all pending events', { timeout: PHASE_MS }, async () => {
      store = await openStore(dataLocation);
      await drain(store);
      assert.equal(await server?.stop(), 0);
    });

    test('every acknowledged change has arrived, in order', (t) => {
      assert.ok(count >= changes);
      const arrived = new Map<string, string[]>();
      const seen = new Set<string>();
      for (const { attributes, body } of sink.accepted) {
        const { id = '', subject = '' } = attributes;
        if (seen.has(id)) continue;
        seen.add(id);
        arrived.set(subject, [...(arrived.get(subject) ?? []), String(JSON.parse(body).body.description)]);
      }
      for (const [uid, descriptions] of acknowledged) {
        const expected = new Set(descriptions);
        // A change without a response may have been committed, and then its event arrives too.
        const received = arrived.get(uid)?.filter((description) => expected.has(description));
        assert.deepEqual(received, descriptions, `every acknowledged change of ${uid} has arrived`);
      }
      const repeated = sink.accepted.length - seen.size;
      t.diagnostic(`${count} changes acknowledged, ${cutOff} cut off`);
      t.diagnostic(`${sink.requests()} requests, ${sink.accepted.length} accepted, ${repeated} of them repeated`);
    });

    test('only committed events arrive, those about one subject in the order of their commits', async () => {
      assert.ok(store);
      const rows = await store.reader.all<{ id: number; event_id: string }>('SELECT id, event_id FROM outbox');
      const committed = new Map(rows.map((row) => [row.event_id, row.id]));
      const latest = new Map<string, number>();
      const seen = new Set<string>();
      for (const { attributes, body } of sink.accepted) {
        const { id = '', subject = '' } = attributes;
        const position = committed.get(id);
        assert.ok(position !== undefined, 'the event was committed');
        assert.ok(!body.includes('refused'), 'the change was not rolled back');
        if (seen.has(id)) continue;
        seen.add(id);
        assert.ok(position > (latest.get(subject) ?? 0), `the events about ${subject} arrive in order`);
        latest.set(subject, position);
      }
      assert.ok(seen.size >= changes);
    });
  });
}

interface FailingSink {
  readonly url: string;
  /** The requests that got a successful response, in order. */
  readonly accepted: TestSink['received'];
  requests(): number;
  close(): Promise<void>;
}

/** Makes the sink fail half of the requests: with status 500, a closed connection or, less often, no response. */
function failHalfOfRequests(sink: TestSink): FailingSink {
  const accepted: TestSink['received'] = [];
  const failures = new Map<string, number>();
  let seed = 1;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const fail = (response: ServerResponse): void => {
    const kind = Math.floor(random() * HANG_ONE_IN);
    if (kind === 0) return;
    if (kind % 2 === 0) response.writeHead(500).end('no');
    else response.socket?.destroy();
  };
  sink.handler = (request, response) => {
    const { id = '' } = request.attributes;
    const failed = failures.get(id) ?? 0;
    if (random() < 0.5 || failed >= MAX_FAILURES) {
      accepted.push(request);
      return false;
    }
    failures.set(id, failed + 1);
    fail(response);
    return true;
  };
  return { url: sink.url, accepted, requests: () => sink.received.length, close: () => sink.close() };
}

/** Waits until no delivery is pending. Fails when their number has not changed for some time. */
async function drain(store: Store): Promise<void> {
  const sql = `SELECT (SELECT count(*) FROM outbox WHERE expires IS NULL)
    + (SELECT count(*) FROM delivery WHERE state = 'pending') AS n`;
  const countPending = async (): Promise<number> => {
    // The queries take time from the server.
    await delay(100);
    return (await store.reader.get<{ n: number }>(sql))?.n ?? assert.fail();
  };
  for (let pending = await countPending(); pending > 0; ) {
    const last = pending;
    pending = await pollUntil(countPending, (n) => n !== last, STALL_MS);
  }
}
