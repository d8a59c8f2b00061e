import {
  type Subscription,
  SubscriptionsService,
} from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import * as v1 from '../../src/contract/gen/platform/events/v1/subscriptions.platform_pb.js';
import type { VersionPair } from '../support/version-pairs.ts';

const { method } = v1.Subscriptions;

const sinkNamed = (name: string): string => `https://sink.invalid/${encodeURIComponent(name)}`;

export const subscriptions: VersionPair<v1.Subscription, Subscription> = {
  resource: 'subscription',
  v1: {
    create: (api, parentId, name) => api.call(method.create, { parentId, subscription: { sink: sinkNamed(name) } }),
    find: async (api, id) => (await api.call(method.list, { id })).items,
    remove: (api, id) => api.call(method.delete, { id }),
    commonFields: ({ id: uid, sink }) => ({ uid, sink }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(SubscriptionsService.method.createSubscription, { parent, subscription: { sink: sinkNamed(name) } }),
    get: (api, uid) => api.call(SubscriptionsService.method.getSubscription, { uid }),
    find: async (api, uid) =>
      (await api.call(SubscriptionsService.method.listSubscriptions, { uidp: { ids: [uid] } })).subscriptions,
    remove: (api, uid) => api.call(SubscriptionsService.method.deleteSubscription, { uid }),
    commonFields: ({ uid, sink }) => ({ uid, sink }),
  },
};
