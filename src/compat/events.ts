import {
  SubscriptionSchema,
  SubscriptionsService,
} from '../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import {
  Subscriptions,
  SubscriptionSchema as V1SubscriptionSchema,
} from '../contract/gen/platform/events/v1/subscriptions.platform_pb.js';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { listAll, within } from './list-all.ts';
import { vocabulary } from './message-mapper.ts';

const words = vocabulary(V1SubscriptionSchema, SubscriptionSchema, {
  names: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1 = Subscriptions.method;
const v2 = SubscriptionsService.method;

export const eventOperations = (operations: Operations): Operations => ({
  ...adapt(operations, v1.create, v2.createSubscription, {
    request: ({ parentId, subscription }) => ({ parent: parentId, subscription: words.toV2(subscription) }),
    response: words.toV1,
    fields: { parent: 'parent_id' },
  }),
  ...listAll(operations, v1.list, v2.listSubscriptions, {
    request: ({ uidp, id }) => ({ uidp: within(uidp, id) }),
    response: ({ subscriptions }) => subscriptions.map(words.toV1),
    fields: { uid: 'id' },
  }),
  ...adapt(operations, v1.delete, v2.deleteSubscription, {
    request: ({ id }) => ({ uid: id }),
    fields: { uid: 'id' },
    event: (facts) => ({ ...facts, body: undefined }),
  }),
});
