import type { Command } from 'commander';
import { SubscriptionSchema } from '../../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { addExamples } from '../help.ts';
import type { CommandSpec } from '../resource/command-spec.ts';
import { addResource } from '../resource/commands.ts';
import { addDeliveries, addReplay } from './deliveries.ts';
import { addListen } from './listen.ts';
import { addSinkCommands } from './sinks.ts';

const subscriptions: CommandSpec = {
  name: 'subscriptions',
  resource: SubscriptionSchema,
  columns: { UID: 'uid', SINK: 'sink', CREATED: 'createTime' },
  responseHeader: { name: 'secret', header: 'wharfinger-webhook-secret' },
  examples: { create: '--parent $GROUP --sink https://example.com/hook' },
};

/** The commands of `wharf events`. */
export function addEvents(area: Command): void {
  addResource(area, subscriptions);
  addDeliveries(area);
  addReplay(area);
  addSinkCommands(area);
  addListen(area);
  addExamples(
    area,
    'wharf events listen --group $GROUP',
    'wharf events subscriptions create --parent $GROUP --sink https://example.com/hook',
    'wharf events deliveries list --parent $GROUP --state failed',
  );
}
