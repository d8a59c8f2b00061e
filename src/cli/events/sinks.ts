import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { duration } from '../../config-values.ts';
import { SinksService } from '../../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, checked, contextOf } from '../context.ts';
import { example } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';

type SinkMethod = (typeof SinksService)['methods'][number];

/** How the far end of a subscription fares, and its secret. */
export function addSinkCommands(area: Command): void {
  const { getSink, enableSink, rotateSecret } = SinksService.method;
  add('status', 'say how the sink of a subscription fares', getSink);
  add('enable', 'send to a sink again that was disabled', enableSink);
  const rotate = add('rotate-secret', 'make a new secret for a subscription, and print it this once', rotateSecret);
  rotate.option('--overlap <time>', 'how long the former one stays good (default: 1d)', checked(duration('0s', '30d')));

  function add(name: string, description: string, method: SinkMethod): Command {
    const command = area.command(name).description(description).argument('<uid>', 'the subscription');
    addClientOptions(command);
    example(command, `wharf events ${name} $SUBSCRIPTION`);
    command.action(async (uid: string, { overlap }: { overlap?: number }) => {
      const context = await contextOf(command);
      const body: JsonObject = overlap === undefined ? {} : { overlap: `${overlap / 1000}s` };
      const answer = await createApi(context).call(method, { path: [uid], body });
      print(context, answer, () => detailsText(answer));
    });
    return command;
  }
}
