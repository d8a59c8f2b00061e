import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { wires } from '../support/wires.ts';

const { createGroup } = GroupsService.method;

const GROUPS = 100;
const PHASE_MS = 600_000;

// All subscriptions have the same sink, and this test is not about the limit of its rate.
const env = { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_SINK_RATE: '100000' };

/** Inserts events about 10 subjects in turn, with increasing numbers as bodies. */
const INSERT_EVENTS = `INSERT INTO outbox (event_id, type, subject, scope, time, audience, extensions, body)
  SELECT $1 || '-' || n, 'dev.chainguard.api.iam.group.updated.v1', $1 || '/' || n % 10, $2, $3, 'customer', '{}', CAST(n AS TEXT)
  FROM generate_series(1, $4) AS n`;

describe('two servers on one PostgreSQL', () => {
  const database = databases[1] ?? assert.fail();
  const groups: string[] = [];
  let dataLocation: DataLocation;
  let store: Store;
  let sink: TestSink;
  let servers: ServerProcess[];
  before(async () => {
    dataLocation = await database.createDataLocation();
    // The first start creates the schema and the owner.
    servers = [await spawnServer(dataLocation, env), await spawnServer(dataLocation, env)];
    store = await openStore(dataLocation);
    sink = await startSink();
    const owner = await readOwner(dataLocation.dataDir);
    const token = await mintOwnerToken(dataLocation.dataDir);
    const url = servers[0]?.url ?? '';
    const api = wires[0]?.connect(url, token) ?? assert.fail();
    for (let i = 0; i < GROUPS; i++) {
      const request = { parent: owner?.organization ?? '', group: { name: `group ${i}` } };
      const { uid } = await api.call(createGroup, request);
      groups.push(uid);
      await subscribe('REST', { url, token }, uid, sink.url);
    }
    await arrival(GROUPS);
  });
  after(async () => {
    for (const server of servers) await server.kill();
    await sink.close();
    await store.close();
    await dataLocation.remove();
  });

  /** Waits until `count` different events have arrived. Fails when none arrives any more, however long it takes. */
  async function arrival(count: number): Promise<void> {
    const countArrived = async () => new Set(sink.received.map(({ attributes }) => attributes.id)).size;
    for (let arrived = await countArrived(); arrived < count; ) {
      const last = arrived;
      arrived = await pollUntil(countArrived, (n) => n > last);
    }
  }

  async function change(series: string, perGroup: number): Promise<void> {
    await store.write(async (tx) => {
      for (const [at, group] of groups.entries()) {
        await tx.run(INSERT_EVENTS, `${series}-${at}`, group, Date.now(), perGroup);
      }
    });
  }

  /** Asserts that the events about each subject arrived in order. Repeated deliveries do not count. */
  function assertOrdered(): void {
    const seen = new Set<string>();
    const latest = new Map<string, number>();
    for (const { attributes, body } of sink.received) {
      const { id = '', subject = '' } = attributes;
      if (seen.has(id)) continue;
      seen.add(id);
      const n = Number(JSON.parse(body).body);
      assert.ok(n > (latest.get(subject) ?? 0), `the events about ${subject} arrive in order`);
      latest.set(subject, n);
    }
  }

  test('10,000 events are delivered once each, in order, by both servers', { timeout: PHASE_MS }, async (t) => {
    sink.received.length = 0;
    const started = performance.now();
    await change('first', 100);
    await arrival(10_000);
    const seconds = (performance.now() - started) / 1000;
    const pending = "SELECT count(*) AS n FROM delivery WHERE state = 'pending'";
    await pollUntil(
      async () => (await store.reader.get<{ n: number }>(pending))?.n,
      (n) => n === 0,
    );
    assert.equal(sink.received.length, 10_000, 'once each');
    assertOrdered();
    const bySource = Map.groupBy(sink.received, ({ attributes }) => attributes.source);
    const shares = servers.map(({ url }) => bySource.get(url)?.length ?? 0);
    assert.ok(Math.min(...shares) > 0, `both servers deliver: ${shares}`);
    t.diagnostic(`${shares.join(' and ')} in ${seconds.toFixed(1)} s`);
  });

  test('no event is lost when one server is killed', { timeout: PHASE_MS }, async (t) => {
    for (const server of servers) assert.equal(await server.stop(), 0);
    // Leases last three times as long. Then the other server takes over those of a killed one.
    const shortLeases = {
      ...env,
      WHARF_DELIVERY_TIMEOUT: '1s',
      // On a busy machine, an attempt may time out and must be retried soon.
      WHARF_DELIVERY_SCHEDULE: `0s${',100ms'.repeat(19)}`,
    };
    servers = [await spawnServer(dataLocation, shortLeases), await spawnServer(dataLocation, shortLeases)];
    sink.received.length = 0;
    await change('second', 10);
    await arrival(100);
    await servers[1]?.kill();
    const before = sink.received.length;
    await arrival(1000);
    assertOrdered();
    t.diagnostic(`killed after ${before} of 1000; ${sink.received.length - 1000} arrived twice`);
  });
});
