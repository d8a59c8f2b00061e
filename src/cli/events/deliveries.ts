import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { ConfigError, duration } from '../../config-values.ts';
import { DeliveriesService, DeliverySchema } from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, checked, contextOf } from '../context.ts';
import { example } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { addVerb } from '../resource/commands.ts';
import type { ResourceSpec } from '../resource/spec.ts';

const deliveries: ResourceSpec = {
  name: 'deliveries',
  resource: DeliverySchema,
  columns: {
    UID: 'uid',
    STATE: 'state',
    EVENT: 'eventType',
    ATTEMPTS: 'attempts',
    STATUS: 'status',
    'SENT AT': 'attemptTime',
    ERROR: 'error',
  },
  examples: { list: '--parent $GROUP --state failed', get: '$UID' },
};

export function addDeliveries(area: Command): void {
  const parent = area.command('deliveries').description('events on their way to subscriptions, and how that went');
  example(parent, 'wharf events deliveries list --parent $SUBSCRIPTION');
  addVerb(parent, 'list', deliveries);
  addVerb(parent, 'get', deliveries, 'show');

  const replay = addClientOptions(
    parent
      .command('replay')
      .description('send an event once more, under the same id')
      .argument('<uid>', 'the delivery'),
  );
  example(replay, 'wharf events deliveries replay $UID');
  replay.action(async (uid: string) => {
    const context = await contextOf(replay);
    const answer = await createApi(context).call(DeliveriesService.method.replayDelivery, { path: [uid] });
    print(context, answer, () => detailsText(answer));
  });
}

interface ReplayOptions {
  readonly since: string;
  readonly failed?: true;
}

/** Sends many events once more. */
export function addReplay(area: Command): void {
  const command = addClientOptions(
    area
      .command('replay')
      .description('send the events of some time once more, in their order and under the same ids')
      .argument('<uid>', 'a subscription, or a group for all that are in it and below')
      .requiredOption(
        '--since <time>',
        'a time such as 2026-01-31T12:00:00Z, or how long ago: 90m, 2d',
        checked(timeOf),
      )
      .option('--failed', 'leave out what was delivered'),
  );
  example(command, 'wharf events replay $SUBSCRIPTION --since 2h', 'wharf events replay $GROUP --since 1d --failed');
  command.action(async (parent: string, { since, failed }: ReplayOptions) => {
    const context = await contextOf(command);
    const api = createApi(context);
    let replayed = 0;
    let token = '';
    do {
      const body: JsonObject = {
        parent,
        since,
        failedOnly: failed === true,
        ...(token !== '' && { pageToken: token }),
      };
      const answer = await api.call(DeliveriesService.method.replayDeliveries, { body });
      replayed += Number(answer.replayed ?? 0);
      token = String(answer.nextPageToken ?? '');
    } while (token !== '');
    print(context, { replayed }, () => `${replayed} events are on their way once more\n`);
  });
}

const ago = duration('1s', '3650d');

/** A time as the API takes it. */
function timeOf(text: string): string {
  if (/^\d{4}-\d\d-\d\d/.test(text)) {
    const time = Date.parse(text);
    if (!Number.isNaN(time)) return new Date(time).toISOString();
    throw new ConfigError('write a time such as 2026-01-31T12:00:00Z');
  }
  return new Date(systemClock() - ago(text)).toISOString();
}
