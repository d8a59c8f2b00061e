import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import {
  DeliveriesService,
  type Delivery,
  DeliveryState,
  type GetDeliveryRequest,
  type ListDeliveriesRequest,
  ListDeliveriesResponseSchema,
  type ReplayDeliveriesRequest,
  ReplayDeliveriesResponseSchema,
  type ReplayDeliveryRequest,
} from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { pageSize } from '../../resource/list/list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import type { Operation, Operations, ReadContext } from '../../resource/operation.ts';
import type { Reader } from '../../store/store.ts';
import { findDelivery, findDone, listDeliveries, type Position, positionOf, replay } from './delivery-rows.ts';

/** A transaction keeps others waiting, so it stays short. */
const REPLAYED_AT_ONCE = 500;

export function deliveryOperations(tokens: PageTokens): Operations {
  const { typeName, method } = DeliveriesService;
  return {
    [`${typeName}/${method.getDelivery.name}`]: get,
    [`${typeName}/${method.listDeliveries.name}`]: list(tokens),
    [`${typeName}/${method.replayDelivery.name}`]: replayOne,
    [`${typeName}/${method.replayDeliveries.name}`]: replayMany(tokens),
  };
}

const get: Operation = {
  mode: 'read',
  run: ({ db }, request) => read(db, (request as GetDeliveryRequest).uid),
};

async function read(db: Reader, uid: string): Promise<Delivery> {
  const delivery = await findDelivery(db, uid);
  if (!delivery) throw notFound('delivery', uid);
  return delivery;
}

const list = (tokens: PageTokens): Operation => ({
  mode: 'read',
  async run(ctx, request) {
    const { parent, state, pageSize: asked, pageToken } = request as ListDeliveriesRequest;
    if (!(state in DeliveryState)) {
      throw invalid('state', 'must be DELIVERY_STATE_PENDING, DELIVERY_STATE_DELIVERED or DELIVERY_STATE_FAILED');
    }
    const limit = pageSize(asked);
    const pages = pagesOf(ctx, tokens, ['deliveries', parent, state]);
    // One more than asked for tells whether there is a next page.
    const found = await listDeliveries(ctx.db, { parent, state, after: pages.after(pageToken), limit: limit + 1 });
    const deliveries = found.slice(0, limit);
    const nextPageToken = found.length > limit ? pages.tokenAt(positionOf(deliveries.at(-1)?.uid ?? '')) : '';
    return create(ListDeliveriesResponseSchema, { deliveries, nextPageToken });
  },
});

const replayOne: Operation = {
  mode: 'write',
  async run({ db, now }, request) {
    const { uid } = request as ReplayDeliveryRequest;
    await read(db, uid);
    const at = positionOf(uid);
    if (at) await replay(db, [at], now);
    return read(db, uid);
  },
};

const replayMany = (tokens: PageTokens): Operation => ({
  mode: 'write',
  async run(ctx, request) {
    const { parent, since: from, failedOnly, pageToken } = request as ReplayDeliveriesRequest;
    if (!from) throw invalid('since', 'is required');
    const since = timestampMs(from);
    const pages = pagesOf(ctx, tokens, ['replay', parent, since, failedOnly]);
    const after = pages.after(pageToken);
    const found = await findDone(ctx.db, { parent, since, failedOnly, after, limit: REPLAYED_AT_ONCE });
    await replay(ctx.db, found, ctx.now);
    const nextPageToken = found.length === REPLAYED_AT_ONCE ? pages.tokenAt(found.at(-1)) : '';
    return create(ReplayDeliveriesResponseSchema, { replayed: found.length, nextPageToken });
  },
});

/** Page tokens that are good for one query of one caller. */
function pagesOf({ caller, now }: ReadContext, tokens: PageTokens, query: readonly unknown[]) {
  const fingerprint = JSON.stringify([...query, caller.uid]);
  return {
    after(token: string): Position | undefined {
      const cursor = token === '' ? undefined : tokens.read(token, fingerprint, now);
      return cursor && { subscription: cursor.uid, id: Number(cursor.keys[0]) };
    },
    tokenAt: (at: Position | undefined): string =>
      at ? tokens.issue({ uid: at.subscription, keys: [String(at.id)] }, fingerprint, now) : '',
  };
}
