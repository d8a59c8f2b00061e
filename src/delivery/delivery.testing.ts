import { create } from '@bufbuild/protobuf';
import { createMetrics } from '../base/metrics.ts';
import { newUid, ROOT } from '../base/uid.ts';
import { SubscriptionSchema } from '../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { addSink } from '../domains/events/sink-rows.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { insert } from '../resource/write.ts';
import { appendEvent, type OutboxEvent } from '../store/outbox.ts';
import type { Row, Store } from '../store/store.ts';
import { createDelivery, type Delivery, type DeliveryOptions } from './delivery.ts';

/** The time at which tests begin. */
export const START = Date.UTC(2026, 0, 1);

/** Creates a delivery with settings for tests. */
export function deliveryOn(store: Store, clock: () => number, options: Partial<DeliveryOptions> = {}): Delivery {
  return createDelivery({
    store,
    clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: createMetrics(),
    accessTokens: { signAssertion: async () => 'a token' },
    unseal: async () => 'whsec_c2VjcmV0',
    publicUrl: 'https://wharf.example.com',
    allowInsecure: true,
    schedule: [0, 5_000, 300_000],
    timeoutMs: 2_000,
    giveUpMs: 5 * 86_400_000,
    retentionMs: 30 * 86_400_000,
    makerAccess: async () => undefined,
    eventReaders: new Map(),
    limits: { rate: 100_000, newSinkIntervalMs: 0 },
    ...options,
  });
}

/** Creates a subscription, by default in a new group, and returns its uid. */
export async function subscribeTo(store: Store, sink: string, parent = newUid(ROOT)): Promise<string> {
  const uid = newUid(parent);
  await store.write(async (tx) => {
    const message = create(SubscriptionSchema, { sink });
    await insert(tx, subscriptions, { message, uid, parent, state: { secret: '' } }, START);
    await addSink(tx, uid, parent);
  });
  return uid;
}

let events = 0;

/** Appends the event of a change in a group. */
export const appendChange = (store: Store, group: string, time: number, subject = group): Promise<void> =>
  store.write((tx) => appendEvent(tx, newEvent(group, time, subject)));

/** Appends the events of many changes in one transaction, each with its own subject. */
export const appendChanges = (store: Store, group: string, time: number, count: number): Promise<void> =>
  store.write(async (tx) => {
    for (let n = 0; n < count; n++) await appendEvent(tx, newEvent(group, time, `subject ${n}`));
  });

const newEvent = (group: string, time: number, subject: string): OutboxEvent => ({
  id: `event ${++events}`,
  type: 'dev.example.changed.v1',
  subject,
  scope: group,
  time,
  audience: 'customer',
  extensions: { group },
});

export interface StoredDelivery extends Row {
  readonly state: string;
  readonly attempts: number;
  readonly due: number | null;
  readonly status: number | null;
  readonly error: string | null;
}

/** Reads the deliveries to a subscription, the oldest first. */
export const deliveriesTo = async (store: Store, subscription: string): Promise<StoredDelivery[]> =>
  store.reader.all<StoredDelivery>(
    'SELECT state, attempts, due, status, error FROM delivery WHERE subscription = $1 ORDER BY id',
    subscription,
  );
