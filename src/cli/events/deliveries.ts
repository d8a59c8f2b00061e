import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { ConfigError, durationParser } from '../../config-values.ts';
import { DeliveriesService, DeliverySchema } from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import type { CommandSpec } from '../resource/command-spec.ts';
import { addVerb } from '../resource/commands.ts';

const deliveries: CommandSpec = {
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
  examples: { list: '--parent $GROUP --state failed', get: '$ID' },
};

export function addDeliveries(area: Command): void {
  const parent = area.command('deliveries').description('deliveries of events to subscriptions');
  addExamples(parent, 'wharf events deliveries list --parent $SUBSCRIPTION');
  addVerb(parent, 'list', deliveries);
  addVerb(parent, 'get', deliveries, 'show');

  const replay = addClientOptions(
    parent.command('replay').description('send an event again, with the same id').argument('<uid>', 'the delivery'),
  );
  addExamples(replay, 'wharf events deliveries replay $ID');
  replay.action(async (uid: string) => {
    const context = await readContext(replay);
    const delivery = await createApi(context).call(DeliveriesService.method.replayDelivery, { path: [uid] });
    print(context, delivery, () => detailsText(delivery));
  });
}

interface ReplayOptions {
  readonly since: string;
  readonly failed?: true;
}

/** Adds the command that sends many events again. */
export function addReplay(area: Command): void {
  const command = addClientOptions(
    area
      .command('replay')
      .description('send all events since a time again, in their order and with the same ids')
      .argument('<uid>', 'a subscription, or a group for all subscriptions of the group and its descendants')
      .requiredOption(
        '--since <time>',
        'a time such as 2026-01-31T12:00:00Z, or how long ago: 90m, 2d',
        optionParser(parseTime),
      )
      .option('--failed', 'only events that were not delivered'),
  );
  addExamples(
    command,
    'wharf events replay $SUBSCRIPTION --since 2h',
    'wharf events replay $GROUP --since 1d --failed',
  );
  command.action(async (parent: string, { since, failed }: ReplayOptions) => {
    const context = await readContext(command);
    const api = createApi(context);
    let replayed = 0;
    let pageToken = '';
    do {
      const body: JsonObject = {
        parent,
        since,
        failedOnly: failed === true,
        ...(pageToken !== '' && { pageToken }),
      };
      const page = await api.call(DeliveriesService.method.replayDeliveries, { body });
      replayed += Number(page.replayed ?? 0);
      pageToken = String(page.nextPageToken ?? '');
    } while (pageToken !== '');
    print(context, { replayed }, () => `${replayed} events will be sent again\n`);
  });
}

const parseAge = durationParser('1s', '3650d');

/** Parses a time or an age into the format of the API. */
function parseTime(text: string): string {
  if (/^\d{4}-\d\d-\d\d/.test(text)) {
    const time = Date.parse(text);
    if (!Number.isNaN(time)) return new Date(time).toISOString();
    throw new ConfigError('write a time such as 2026-01-31T12:00:00Z');
  }
  return new Date(systemClock() - parseAge(text)).toISOString();
}
