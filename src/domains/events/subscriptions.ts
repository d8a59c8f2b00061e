import { precondition } from '../../base/errors.ts';
import {
  SubscriptionSchema,
  SubscriptionsService,
} from '../../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { defineResource, type Resource } from '../../resource/definition.ts';
import type { Engine } from '../../resource/engine.ts';
import type { Operations } from '../../resource/operation.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { addSink, countSinks, dropSink } from './sink-rows.ts';
import { newSecret, type Seal, type Secrets, secretContext } from './webhook-secret.ts';

/** An address that gets the events of a group and of all below it. Its row in `sink` is what delivery works with. */
export const subscriptions = defineResource({
  kind: 'subscription',
  plural: 'subscriptions',
  schema: SubscriptionSchema,
  parents: ['group'],
  orders: { sink: (subscription) => subscription.sink },
  afterCreate: ({ db }, { uid, parent }) => addSink(db, uid, parent),
  beforeDelete: ({ db }, { uid }) => dropSink(db, uid),
});

/** Carries the secret of a new subscription, the only time that it is told: its message has no field for it. */
export const SECRET_HEADER = 'wharfinger-webhook-secret';

/** Every event of the group is written down for each of them. */
const MAX_PER_GROUP = 100;

export interface SubscriptionOptions {
  readonly seal: Seal;
  /** What keeps an address from being a sink, or nothing. */
  readonly sinkProblem: (sink: string) => string | undefined;
}

export function subscriptionOperations(engine: Engine, { seal, sinkProblem }: SubscriptionOptions): Operations {
  const resource: Resource<typeof SubscriptionSchema> = {
    ...subscriptions,
    rules: { sink: sinkProblem },
    async beforeCreate(ctx, _subscription, { uid, parent }) {
      if ((await countSinks(ctx.db, parent)) >= MAX_PER_GROUP) {
        const limit = `a group can have at most ${MAX_PER_GROUP} subscriptions`;
        throw precondition('TOO_MANY_SUBSCRIPTIONS', parent, limit);
      }
      const secret = newSecret();
      ctx.setHeader(SECRET_HEADER, secret);
      const secrets: Secrets = { secret: seal(secret, secretContext(uid)) };
      return { ...secrets };
    },
  };
  return standardOperations(engine, resource, SubscriptionsService);
}
