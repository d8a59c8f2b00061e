/**
 * Deliveries per second to sinks on this machine, compared with plain requests to the same sinks. And the latency of a
 * create with its event, compared with the same create without an event. On SQLite, in one process.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/create-caller.ts';
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
import { fixedMasterKeys } from '../src/identity/master-key.testing.ts';
import { createAccessTokens } from '../src/identity/tokens/access-tokens.ts';
import { createSigningKeys } from '../src/identity/tokens/signing-keys.ts';
import { createCallObserver } from '../src/pipeline/observe.ts';
import { createPipeline } from '../src/pipeline/pipeline.ts';
import { createPageTokens } from '../src/resource/list/page-token.ts';
import { standardOperations } from '../src/resource/standard-methods.ts';
import { insert } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { startChildProgram } from './lib/child-program.ts';
import { compareInTurn } from './lib/compare.ts';
import { type BenchmarkResult, formatFigure, runSuite, type Suite } from './lib/result.ts';

const ROUNDS = 3;
const EVENTS = 2000;
const SINKS = 20;
/** Many short rounds: a short disturbance of the machine affects few of them. */
const CREATE_ROUNDS = 15;
const CREATES = 200;

const log = { debug() {}, info() {}, warn() {}, error() {} };
const key = Buffer.alloc(32, 7);

export const events: Suite = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir });
  const sink = startChildProgram('baseline-http.ts');
  const port = await sink.request<number>({ headers: { 'content-length': 0 }, body: '' });
  const groupUids = await createSubscribedGroups(store, `http://127.0.0.1:${port}/`);
  try {
    return [await measureDeliveries(store, groupUids, port), await measureCreates(store)];
  } finally {
    await sink.stop();
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
};

/** Creates groups with one subscription each, and returns their uids. */
async function createSubscribedGroups(store: Store, sink: string): Promise<string[]> {
  const groupUids = Array.from({ length: SINKS }, () => newUid(ROOT));
  await store.write(async (tx) => {
    for (const [at, uid] of groupUids.entries()) {
      const now = systemClock();
      await insert(tx, groups, { message: create(GroupSchema, { name: `group ${at}` }), uid, parent: ROOT }, now);
      const subscription = newUid(uid);
      const state = { secret: 'sealed secret' };
      const message = create(SubscriptionSchema, { sink });
      await insert(tx, subscriptions, { message, uid: subscription, parent: uid, state }, now);
      await addSink(tx, subscription, uid);
    }
  });
  return groupUids;
}

async function measureDeliveries(store: Store, groupUids: readonly string[], port: number): Promise<BenchmarkResult> {
  const metrics = createMetrics();
  let delivered = 0;
  let onSeriesDelivered = (): void => {};
  const signingKeys = await createSigningKeys({ store, masterKeys: fixedMasterKeys(key), clock: systemClock });
  const delivery = createDelivery({
    store,
    clock: systemClock,
    log,
    metrics: {
      delivery: {
        ...metrics.delivery,
        observe: () => {
          if (++delivered % EVENTS === 0) onSeriesDelivered();
        },
      },
    },
    accessTokens: createAccessTokens({ signingKeys, clock: systemClock, issuer: 'http://127.0.0.1' }),
    unseal: async () => `whsec_${key.toString('base64')}`,
    publicUrl: 'http://127.0.0.1',
    allowInsecure: true,
    schedule: [0],
    timeoutMs: 15_000,
    giveUpMs: 1e9,
    retentionMs: 1e9,
    makerAccess: async () => undefined,
    eventReaders: new Map(),
    // Sinks that have accepted a delivery, without the limit of their rate.
    limits: { rate: 1e6, newSinkIntervalMs: 10_000 },
  });
  let series = 0;
  const deliver = async (): Promise<number> => {
    const done = new Promise<void>((resolve) => {
      onSeriesDelivered = resolve;
    });
    await insertEvents(store, groupUids, ++series);
    const started = performance.now();
    delivery.wake();
    await done;
    return (EVENTS / (performance.now() - started)) * 1000;
  };
  await deliver();
  const { ratio, a, b } = await compareInTurn(ROUNDS, deliver, () => plainPosts(port));
  await delivery.stop();
  return {
    benchmark: `deliveries to ${SINKS} local sinks`,
    baseline: 'plain POST requests to the same sinks',
    value: ratio,
    unit: 'times the rate',
    figures: `${formatFigure(a)} against ${formatFigure(b)} per second`,
  };
}

const INSERT_EVENT = `INSERT INTO outbox (event_id, type, subject, scope, time, audience, extensions, body)
  VALUES ($1, 'dev.example.changed.v1', $2, $3, $4, 'customer', '{}', $5)`;

async function insertEvents(store: Store, groupUids: readonly string[], series: number): Promise<void> {
  const body = JSON.stringify({ name: 'a group', description: 'x'.repeat(300) });
  await store.write(async (tx) => {
    for (let n = 0; n < EVENTS; n++) {
      const group = groupUids[n % groupUids.length] ?? '';
      await tx.run(INSERT_EVENT, `${series}-${n}`, group, group, systemClock(), body);
    }
  });
}

/** Sends the same number of requests on the same number of connections, and returns requests per second. */
async function plainPosts(port: number): Promise<number> {
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

async function measureCreates(store: Store): Promise<BenchmarkResult> {
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
  const methodWithoutEvent: Method = { ...method, event: undefined };
  let nameCount = 0;
  /** Creates groups one after the other and returns the milliseconds of one create. */
  const latency = async (calledMethod: Method): Promise<number> => {
    const started = performance.now();
    for (let n = 0; n < CREATES; n++) {
      await call({
        method: calledMethod,
        wire: 'rest',
        authorization: undefined,
        requestId: '',
        peer: { address: '', userAgent: '' },
        signal: () => new AbortController().signal,
        read: () => create(CreateGroupRequestSchema, { parent: organization, group: { name: `group ${++nameCount}` } }),
      });
    }
    return (performance.now() - started) / CREATES;
  };
  await latency(method);
  await latency(methodWithoutEvent);
  const { ratio, a, b } = await compareInTurn(
    CREATE_ROUNDS,
    () => latency(method),
    () => latency(methodWithoutEvent),
  );
  return {
    benchmark: 'a create with its event in the outbox',
    baseline: 'the same create without an event',
    value: ratio,
    unit: 'times the time',
    figures: `${formatFigure(a * 1000)} against ${formatFigure(b * 1000)} microseconds`,
  };
}

if (import.meta.main) await runSuite(events);
