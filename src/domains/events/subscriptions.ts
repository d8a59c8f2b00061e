import { precondition } from '../../base/errors.ts';
import {
  SubscriptionSchema,
  SubscriptionsService,
} from '../../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { defineResource, type Resource } from '../../resource/definition.ts';
import type { Engine } from '../../resource/engine.ts';
import type { Operations } from '../../resource/operation.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { encodeMaker } from './maker.ts';
import { addSink, countSinks, dropSink } from './sink-rows.ts';
import { newWebhookSecret, type Seal, secretContext, type WebhookSecrets } from './webhook-secret.ts';

/** A URL to which the events of a group and its descendants are sent. Delivery reads its row in the table `sink`. */
export const subscriptions = defineResource({
  kind: 'subscription',
  plural: 'subscriptions',
  schema: SubscriptionSchema,
  parents: ['group'],
  orders: { sink: (subscription) => subscription.sink },
  afterCreate: ({ db, caller, now }, { uid, parent }) => addSink(db, uid, parent, encodeMaker(caller, now)),
  beforeDelete: ({ db }, { uid }) => dropSink(db, uid),
});

/** The response header with the secret of a new subscription. The message has no field for it. It is sent only once. */
export const SECRET_HEADER = 'wharfinger-webhook-secret';

/** Every event of the group is written once for each subscription. */
const MAX_PER_GROUP = 100;

export interface SubscriptionOptions {
  readonly seal: Seal;
  /** What is wrong with a sink URL, or undefined when it is allowed. */
  readonly sinkProblem: (sink: string) => string | undefined;
}

export function subscriptionOperations(engine: Engine, { seal, sinkProblem }: SubscriptionOptions): Operations {
  const resource: Resource<typeof SubscriptionSchema> = {
    ...subscriptions,
    rules: { sink: sinkProblem },
    async beforeCreate(ctx, _subscription, { uid, parent }) {
      if ((await countSinks(ctx.db, parent)) >= MAX_PER_GROUP) {
        const problem = `a group can have at most ${MAX_PER_GROUP} subscriptions; delete one first`;
        throw precondition('TOO_MANY_SUBSCRIPTIONS', parent, problem);
      }
      const secret = newWebhookSecret();
      ctx.setHeader(SECRET_HEADER, secret);
      const secrets: WebhookSecrets = { secret: await seal(ctx.db, secret, secretContext(uid)) };
      return { ...secrets };
    },
  };
  return standardOperations(engine, resource, SubscriptionsService);
}
