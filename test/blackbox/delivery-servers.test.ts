import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { databases, type Home } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { wires } from '../support/wires.ts';

const { createGroup } = GroupsService.method;

const GROUPS = 100;
const PATIENCE_MS = 120_000;

const env = { WHARF_ALLOW_INSECURE_SINKS: 'true' };

/** The events of committed changes, many at once: 10 subjects in turn, each counted up. */
const CHANGES = `INSERT INTO outbox (event_id, type, subject, scope, time, audience, extensions, body)
  SELECT $1 || '-' || n, 'dev.example.changed.v1', $1 || '/' || n % 10, $2, $3, 'customer', '{}', CAST(n AS TEXT)
  FROM generate_series(1, $4) AS n`;

describe('two servers on one PostgreSQL', () => {
  const database = databases[1] ?? assert.fail();
  const groups: string[] = [];
  let home: Home;
  let store: Store;
  let sink: TestSink;
  let servers: ServerProcess[];
  before(async () => {
    home = await database.home();
    // The first start makes what both need.
    servers = [await spawnServer(home, env), await spawnServer(home, env)];
    store = await openStore(home);
    sink = await startSink();
    const owner = await readOwner(home.dataDir);
    const token = await mintOwnerToken(home.dataDir);
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
    await home.remove();
  });

  const arrival = (count: number) =>
    until(
      async () => new Set(sink.received.map(({ attributes }) => attributes.id)).size,
      (arrived) => arrived >= count,
      PATIENCE_MS,
    );

  async function change(series: string, perGroup: number): Promise<void> {
    await store.write(async (tx) => {
      for (const [at, group] of groups.entries()) {
        await tx.run(CHANGES, `${series}-${at}`, group, Date.now(), perGroup);
      }
    });
  }

  /** Fails unless the events about each subject came in their order, the first time that they came. */
  function assertOrdered(): void {
    const seen = new Set<string>();
    const latest = new Map<string, number>();
    for (const { attributes, body } of sink.received) {
      const { id = '', subject = '' } = attributes;
      if (seen.has(id)) continue;
      seen.add(id);
      const n = Number(JSON.parse(body).body);
      assert.ok(n > (latest.get(subject) ?? 0), `${subject} in its order`);
      latest.set(subject, n);
    }
  }

  test('10,000 events arrive once each, in order, and both have taken part', async (t) => {
    sink.received.length = 0;
    const started = performance.now();
    await change('first', 100);
    await arrival(10_000);
    const seconds = (performance.now() - started) / 1000;
    const pending = "SELECT count(*) AS n FROM delivery WHERE state = 'pending'";
    await until(
      async () => (await store.reader.get<{ n: number }>(pending))?.n,
      (n) => n === 0,
    );
    assert.equal(sink.received.length, 10_000, 'once each');
    assertOrdered();
    const bySource = Map.groupBy(sink.received, ({ attributes }) => attributes.source);
    const shares = servers.map(({ url }) => bySource.get(url)?.length ?? 0);
    assert.ok(Math.min(...shares) > 500, `both take part: ${shares}`);
    t.diagnostic(`${shares.join(' and ')} in ${seconds.toFixed(1)} s`);
  });

  test('killing one of them loses nothing', async (t) => {
    for (const server of servers) assert.equal(await server.stop(), 0);
    // A lease is three times as long, after which the work of a dead server is taken over.
    const hasty = { ...env, WHARF_DELIVERY_TIMEOUT: '1s' };
    servers = [await spawnServer(home, hasty), await spawnServer(home, hasty)];
    sink.received.length = 0;
    await change('second', 10);
    await arrival(100);
    await servers[1]?.kill();
    const before = sink.received.length;
    await arrival(1000);
    assertOrdered();
    t.diagnostic(`killed after ${before} of 1000; ${sink.received.length - 1000} came twice`);
  });
});
