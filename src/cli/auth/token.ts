import { type Command, Option } from 'commander';
import { duration } from '../../config-values.ts';
import { addClientOptions, checked, contextOf, ownerToken } from '../context.ts';
import { example } from '../help.ts';
import {
  audienceOption,
  capOption,
  type ExchangeFlags,
  identityOption,
  scopeOption,
  wishOf,
} from './exchange-flags.ts';

interface TokenFlags extends ExchangeFlags {
  readonly lifetime?: number;
  readonly data: string;
}

export function addToken(auth: Command): void {
  const command = auth
    .command('token')
    .description('print the token that commands send, or one that is good for less')
    .addOption(
      new Option('--lifetime <time>', "how long a token of the data directory's owner is good for, up to 24h")
        .conflicts(['token', 'audience', 'identity', 'scope', 'cap'])
        .argParser(checked(duration('1s', '24h'))),
    )
    .addOption(audienceOption())
    .addOption(identityOption())
    .addOption(scopeOption())
    .addOption(capOption());
  addClientOptions(command);
  example(
    command,
    'TOKEN=$(wharf auth token)',
    'wharf auth token --data /srv/wharf --lifetime 8h',
    'wharf auth token --scope $GROUP --cap groups.list',
  );
  command.action(async ({ lifetime, data, ...flags }: TokenFlags) => {
    const context = await contextOf(command);
    const print = (token: string): void => context.terminal.out(`${token}\n`);
    if (lifetime !== undefined) {
      print(await ownerToken(data, { lifetimeSeconds: lifetime / 1000 }));
      return;
    }
    const token = await context.token();
    const wish = wishOf(flags);
    if (Object.values(wish).every((part) => part === undefined)) {
      print(token);
      return;
    }
    const { exchangeToken } = await import('./session.ts');
    print((await exchangeToken(context, token, wish)).token);
  });
}
