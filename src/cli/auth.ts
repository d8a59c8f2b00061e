import { type Command, Option } from 'commander';
import { duration } from '../config-values.ts';
import { checked, dataOption, ownerToken } from './context.ts';
import { example } from './help.ts';

export function addAuth(program: Command): void {
  const auth = program.command('auth').description('tokens to call the API with');
  example(auth, 'wharf auth token');

  const token = auth
    .command('token')
    .description('print a bearer token for the owner that the first start created')
    .addOption(dataOption())
    .addOption(
      new Option('--lifetime <time>', 'how long the token is good for, such as 90m or 1h')
        .default(3_600_000, '1h')
        .argParser(checked(duration('1s', '24h'))),
    )
    .action(async ({ data, lifetime }: { data: string; lifetime: number }) => {
      process.stdout.write(`${await ownerToken(data, { lifetimeSeconds: lifetime / 1000 })}\n`);
    });
  example(token, 'TOKEN=$(wharf auth token)', 'wharf auth token --data /srv/wharf --lifetime 8h');
}
