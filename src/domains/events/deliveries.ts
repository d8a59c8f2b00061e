import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import {
  DeliveriesService,
  type Delivery,
  DeliveryState,
  ListDeliveriesResponseSchema,
  ReplayDeliveriesResponseSchema,
} from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { pageSize } from '../../resource/list/list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import { type Operations, type ReadContext, readOperation, writeOperation } from '../../resource/operation.ts';
import type { Reader } from '../../store/store.ts';
import {
  type DeliveryPosition,
  findDelivery,
  findFinishedDeliveries,
  listDeliveries,
  positionOf,
  replayDeliveries,
} from './delivery-rows.ts';

const { method } = DeliveriesService;

/** The number of deliveries that one call replays. It bounds the duration of the transaction. */
const REPLAY_BATCH = 500;

export const deliveryOperations = (pageTokens: PageTokens): Operations => ({
  ...readOperation(method.getDelivery, ({ db }, { uid }) => requireDelivery(db, uid)),
  ...readOperation(method.listDeliveries, async (ctx, { parent, state, pageSize: size, pageToken }) => {
    if (!(state in DeliveryState)) {
      throw invalid('state', 'must be DELIVERY_STATE_PENDING, DELIVERY_STATE_DELIVERED or DELIVERY_STATE_FAILED');
    }
    const limit = pageSize(size);
    const cursors = deliveryCursors(ctx, pageTokens, ['deliveries', parent, state]);
    // One more than the page size, which shows whether there is a next page.
    const found = await listDeliveries(ctx.db, { parent, state, after: cursors.read(pageToken), limit: limit + 1 });
    const deliveries = found.slice(0, limit);
    const nextPageToken = found.length > limit ? cursors.issue(positionOf(deliveries.at(-1)?.uid ?? '')) : '';
    return create(ListDeliveriesResponseSchema, { deliveries, nextPageToken });
  }),
  ...writeOperation(method.replayDelivery, {
    async run({ db, now }, { uid }) {
      await requireDelivery(db, uid);
      const position = positionOf(uid);
      if (position) await replayDeliveries(db, [position], now);
      return requireDelivery(db, uid);
    },
  }),
  ...writeOperation(method.replayDeliveries, {
    async run(ctx, { parent, since: sinceTime, failedOnly, pageToken }) {
      if (!sinceTime) throw invalid('since', 'is required');
      const since = timestampMs(sinceTime);
      const cursors = deliveryCursors(ctx, pageTokens, ['replay', parent, since, failedOnly]);
      const after = cursors.read(pageToken);
      const found = await findFinishedDeliveries(ctx.db, { parent, since, failedOnly, after, limit: REPLAY_BATCH });
      await replayDeliveries(ctx.db, found, ctx.now);
      const nextPageToken = found.length === REPLAY_BATCH ? cursors.issue(found.at(-1)) : '';
      return create(ReplayDeliveriesResponseSchema, { replayed: found.length, nextPageToken });
    },
  }),
});

async function requireDelivery(db: Reader, uid: string): Promise<Delivery> {
  const delivery = await findDelivery(db, uid);
  if (!delivery) throw notFound('delivery', uid);
  return delivery;
}

/** Reads and issues page tokens that are valid for one query of one caller. */
function deliveryCursors({ caller, now }: ReadContext, pageTokens: PageTokens, query: readonly unknown[]) {
  const fingerprint = JSON.stringify([...query, caller.uid]);
  return {
    read(pageToken: string): DeliveryPosition | undefined {
      const cursor = pageToken === '' ? undefined : pageTokens.read(pageToken, fingerprint, now);
      return cursor && { subscription: cursor.uid, id: Number(cursor.keys[0]) };
    },
    issue: (last: DeliveryPosition | undefined): string =>
      last ? pageTokens.issue({ uid: last.subscription, keys: [String(last.id)] }, fingerprint, now) : '',
  };
}
