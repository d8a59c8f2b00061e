import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { durationParser } from '../../config-values.ts';
import { SinksService } from '../../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';

type SinkMethod = (typeof SinksService)['methods'][number];

/** Adds the commands for the sink of a subscription and its secret. */
export function addSinkCommands(area: Command): void {
  const { getSink, enableSink, rotateSecret, takeOverSink, updateSink } = SinksService.method;
  add('status', 'show the state of the sink of a subscription', getSink);
  add('enable', 'enable a disabled sink', enableSink);
  add('take-over', 'become the maker of a subscription, which resumes it if it is paused', takeOverSink);
  const handshake = add('handshake', 'require the handshake of CloudEvents before the next delivery', updateSink);
  handshake.option('--none', 'require no handshake');
  const rotate = add(
    'rotate-secret',
    'create a new secret for a subscription and print it; it is not shown again',
    rotateSecret,
  );
  rotate.option(
    '--overlap <time>',
    'how long the old secret remains valid (default: 1d)',
    optionParser(durationParser('0s', '30d')),
  );

  function add(name: string, description: string, method: SinkMethod): Command {
    const command = area.command(name).description(description).argument('<uid>', 'the subscription');
    addClientOptions(command);
    addExamples(command, `wharf events ${name} $SUBSCRIPTION`);
    command.action(async (uid: string, { overlap, none }: { overlap?: number; none?: true }) => {
      const context = await readContext(command);
      const body: JsonObject = {
        ...(overlap !== undefined && { overlap: `${overlap / 1000}s` }),
        ...(method === updateSink && { handshake: none ? 'HANDSHAKE_NONE' : 'HANDSHAKE_REQUIRED' }),
      };
      const sink = await createApi(context).call(method, { path: [uid], body });
      print(context, sink, () => detailsText(sink));
    });
    return command;
  }
}
