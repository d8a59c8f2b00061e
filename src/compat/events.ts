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
import { adaptList, uidpFilterOf } from './adapt-list.ts';
import { createMessageMapper } from './message-mapper.ts';

const subscriptionMapper = createMessageMapper(V1SubscriptionSchema, SubscriptionSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1 = Subscriptions.method;
const v2 = SubscriptionsService.method;

export const eventOperations = (operations: Operations): Operations => ({
  ...adapt(operations, v1.create, v2.createSubscription, {
    request: ({ parentId, subscription }) => ({
      parent: parentId,
      subscription: subscriptionMapper.toV2(subscription),
    }),
    response: subscriptionMapper.toV1,
    v1FieldNames: { parent: 'parent_id' },
  }),
  ...adaptList(operations, v1.list, v2.listSubscriptions, {
    request: ({ uidp, id }) => ({ uidp: uidpFilterOf(uidp, id) }),
    response: ({ subscriptions }) => subscriptions.map(subscriptionMapper.toV1),
    v1FieldNames: { uid: 'id' },
  }),
  ...adapt(operations, v1.delete, v2.deleteSubscription, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames: { uid: 'id' },
  }),
});
