// How fast events reach a sink on this machine, against bare requests to the same sink; and what the event of a create
// costs whoever waits for the create, against the same create without one. On SQLite, in one process.
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/caller.ts';
import { systemClock } from '../src/base/clock.ts';
import { createMetrics } from '../src/base/metrics.ts';
import { newUid, ROOT } from '../src/base/uid.ts';
import { capabilitySetOf } from '../src/contract/capabilities.ts';
import { Capability } from '../src/contract/gen/capabilities/capabilities_pb.js';
import { SubscriptionSchema } from '../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import {
  CreateGroupRequestSchema,
  GroupSchema,
  GroupsService,
} from '../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Method } from '../src/contract/method.ts';
import { files, methodTable } from '../src/contract/method-table.ts';
import { createDelivery } from '../src/delivery/delivery.ts';
import { addSink } from '../src/domains/events/sink-rows.ts';
import { subscriptions } from '../src/domains/events/subscriptions.ts';
import { groups } from '../src/domains/iam/groups/groups.ts';
import { createAccessTokens } from '../src/identity/tokens/access-tokens.ts';
import { createSigningKeys } from '../src/identity/tokens/signing-keys.ts';
import { createCallObserver } from '../src/pipeline/observe.ts';
import { createPipeline } from '../src/pipeline/pipeline.ts';
import { createPageTokens } from '../src/resource/list/page-token.ts';
import { standardOperations } from '../src/resource/standard-methods.ts';
import { insert } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { startChild } from './lib/child.ts';
import { type Result, runAlone, type Suite, short } from './lib/result.ts';
import { interleaved } from './lib/rounds.ts';

const ROUNDS = 3;
const EVENTS = 2000;
const SINKS = 20;
/** Short and many: what disturbs the machine then disturbs few of them. */
const CREATE_ROUNDS = 15;
const CREATES = 200;

const log = { debug() {}, info() {}, warn() {}, error() {} };
const key = Buffer.alloc(32, 7);

export const events: Suite = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir });
  const sink = startChild('bare-http.ts');
  const port = await sink.ask<number>({ headers: { 'content-length': 0 }, body: '' });
  const places = await subscribe(store, `http://127.0.0.1:${port}/`);
  try {
    return [await deliveries(store, places, port), await creates(store)];
  } finally {
    await sink.stop();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
};

/** Groups with a subscription each. */
async function subscribe(store: Store, sink: string): Promise<string[]> {
  const places = Array.from({ length: SINKS }, () => newUid(ROOT));
  await store.write(async (tx) => {
    for (const [at, uid] of places.entries()) {
      const now = systemClock();
      await insert(tx, groups, { message: create(GroupSchema, { name: `place ${at}` }), uid, parent: ROOT }, now);
      const subscription = newUid(uid);
      const state = { secret: 'the same for all' };
      const message = create(SubscriptionSchema, { sink });
      await insert(tx, subscriptions, { message, uid: subscription, parent: uid, state }, now);
      await addSink(tx, subscription, uid);
    }
  });
  return places;
}

async function deliveries(store: Store, places: readonly string[], port: number): Promise<Result> {
  const metrics = createMetrics();
  let arrived = 0;
  let reached = (): void => {};
  const signingKeys = await createSigningKeys({ store, masterKey: key, clock: systemClock });
  const delivery = createDelivery({
    store,
    clock: systemClock,
    log,
    metrics: {
      delivery: {
        ...metrics.delivery,
        observe: () => {
          if (++arrived % EVENTS === 0) reached();
        },
      },
    },
    accessTokens: createAccessTokens({ signingKeys, clock: systemClock, issuer: () => 'http://127.0.0.1' }),
    unseal: () => `whsec_${key.toString('base64')}`,
    publicUrl: () => 'http://127.0.0.1',
    allowInsecure: true,
    schedule: [0],
    timeoutMs: 15_000,
    giveUpMs: 1e9,
    retentionMs: 1e9,
  });
  let series = 0;
  const deliver = async (): Promise<number> => {
    const done = new Promise<void>((resolve) => {
      reached = resolve;
    });
    await change(store, places, ++series);
    const started = performance.now();
    delivery.wake();
    await done;
    return (EVENTS / (performance.now() - started)) * 1000;
  };
  await deliver();
  const { ratio, a, b } = await interleaved(ROUNDS, deliver, () => bare(port));
  await delivery.stop();
  return {
    benchmark: `deliveries to ${SINKS} local sinks`,
    baseline: 'bare POST requests to the same',
    value: ratio,
    unit: 'times the rate',
    figures: `${short(a)} against ${short(b)} per second`,
  };
}

const CHANGE = `INSERT INTO outbox (event_id, type, subject, scope, time, audience, extensions, body)
  VALUES ($1, 'dev.example.changed.v1', $2, $3, $4, 'customer', '{}', $5)`;

async function change(store: Store, places: readonly string[], series: number): Promise<void> {
  const body = JSON.stringify({ name: 'a group', description: 'x'.repeat(300) });
  await store.write(async (tx) => {
    for (let n = 0; n < EVENTS; n++) {
      const place = places[n % places.length] ?? '';
      await tx.run(CHANGE, `${series}-${n}`, place, place, systemClock(), body);
    }
  });
}

/** As many requests, on as many connections, with nothing around them. */
async function bare(port: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: SINKS });
  const body = JSON.stringify({ body: { name: 'a group', description: 'x'.repeat(300) } });
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const outgoing = request({ host: '127.0.0.1', port, method: 'POST', agent, headers }, (response) =>
        response.resume().on('end', resolve),
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  let left = EVENTS;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: SINKS }, async () => {
      while (left-- > 0) await post();
    }),
  );
  const rate = (EVENTS / (performance.now() - started)) * 1000;
  agent.destroy();
  return rate;
}

async function creates(store: Store): Promise<Result> {
  const organization = newUid(ROOT);
  const message = create(GroupSchema, { name: 'bench' });
  await store.write((tx) => insert(tx, groups, { message, uid: organization, parent: ROOT }, systemClock()));
  const caller = createCaller('bench', { subject: 'bench' }, [
    { group: organization, capabilities: capabilitySetOf([Capability.CAP_IAM_GROUPS_CREATE]) },
  ]);
  const engine = { kinds: new Map([[groups.kind, groups]]), pageTokens: createPageTokens(key) };
  const call = createPipeline({
    operations: standardOperations(engine, groups, GroupsService),
    store,
    authenticate: async () => caller,
    anonymous: caller,
    clock: systemClock,
    timeoutMs: 30_000,
    observer: createCallObserver({ log, metrics: createMetrics() }),
  });
  const method = methodTable(files).find(({ id }) => id.endsWith('GroupsService/CreateGroup')) as Method;
  const silent: Method = { ...method, event: undefined };
  let named = 0;
  /** Milliseconds for one create, one after the other. */
  const latency = async (of: Method): Promise<number> => {
    const started = performance.now();
    for (let n = 0; n < CREATES; n++) {
      await call({
        method: of,
        wire: 'rest',
        authorization: undefined,
        requestId: '',
        peer: { address: '', userAgent: '' },
        signal: () => new AbortController().signal,
        read: () => create(CreateGroupRequestSchema, { parent: organization, group: { name: `group ${++named}` } }),
      });
    }
    return (performance.now() - started) / CREATES;
  };
  await latency(method);
  await latency(silent);
  const { ratio, a, b } = await interleaved(
    CREATE_ROUNDS,
    () => latency(method),
    () => latency(silent),
  );
  return {
    benchmark: 'a create with its event in the outbox',
    baseline: 'the same create without',
    value: ratio,
    unit: 'times the time',
    figures: `${short(a * 1000)} against ${short(b * 1000)} microseconds`,
  };
}

if (import.meta.main) await runAlone(events);
