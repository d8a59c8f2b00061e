import { type Command, Option } from 'commander';
import { durationParser } from '../../config-values.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import {
  audienceOption,
  capOption,
  type ExchangeFlags,
  identityOption,
  scopeOption,
  tokenRequestOf,
} from './exchange-flags.ts';
import { ownerToken } from './owner-token.ts';

interface TokenFlags extends ExchangeFlags {
  readonly lifetime?: number;
}

export function addToken(auth: Command): void {
  const command = auth
    .command('token')
    .description('print the token that commands send, or exchange it for a restricted one')
    .addOption(
      new Option('--lifetime <time>', 'the lifetime of a token for the owner of the data directory, at most 24h')
        .conflicts(['token', 'audience', 'identity', 'scope', 'cap'])
        .argParser(optionParser(durationParser('1s', '24h'))),
    )
    .addOption(audienceOption())
    .addOption(identityOption())
    .addOption(scopeOption())
    .addOption(capOption());
  addClientOptions(command);
  addExamples(
    command,
    'TOKEN=$(wharf auth token)',
    'wharf auth token --data /srv/wharf --lifetime 8h',
    'wharf auth token --scope $GROUP --cap groups.list',
  );
  command.action(async ({ lifetime, ...flags }: TokenFlags) => {
    const context = await readContext(command);
    const print = (token: string): void => context.terminal.out(`${token}\n`);
    if (lifetime !== undefined) {
      print(await ownerToken(await context.data(), context.terminal, { lifetimeSeconds: lifetime / 1000 }));
      return;
    }
    const token = await context.token();
    const request = tokenRequestOf(flags);
    if (Object.values(request).every((part) => part === undefined)) {
      print(token);
      return;
    }
    const { exchangeToken } = await import('./token-exchange.ts');
    print((await exchangeToken(context, token, request)).token);
  });
}
