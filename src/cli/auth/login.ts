import { type Command, Option } from 'commander';
import { addClientOptions, checked, contextOf } from '../context.ts';
import { example } from '../help.ts';
import { readInput } from '../input.ts';
import { forgetLogin, saveLogin } from '../settings/logins.ts';
import { audienceOption, type ExchangeFlags, identityOption, wishOf } from './exchange-flags.ts';
import { showStatus } from './status.ts';

export function addLogin(auth: Command): void {
  const command = auth
    .command('login')
    .description('trade an OIDC token of your issuer for a login at a server, which later commands use')
    .addOption(
      new Option('--id-token <@file>', 'the OIDC token: @ and a file, or - for standard input')
        .argParser(checked(readInput))
        .makeOptionMandatory(),
    )
    .addOption(identityOption())
    .option('--identity-provider <uid>', 'the identity provider that the token comes from')
    .addOption(audienceOption());
  addClientOptions(command);
  example(
    command,
    'wharf auth login --server https://wharf.example.com --id-token @token.txt',
    'curl -s "$TOKEN_URL" | jq -r .value | wharf auth login --id-token - --identity $IDENTITY',
  );
  command.action(async ({ idToken, ...flags }: ExchangeFlags & { idToken: string }) => {
    const context = await contextOf(command);
    const { exchangeToken } = await import('./session.ts');
    const login = await exchangeToken(context, idToken, wishOf(flags));
    await saveLogin(context.server, login);
    await showStatus({ ...context, token: async () => login.token });
  });
}

export function addLogout(auth: Command): void {
  const command = addClientOptions(auth.command('logout').description('forget the login at a server'));
  example(command, 'wharf auth logout', 'wharf auth logout --server https://wharf.example.com');
  command.action(async () => {
    const { server, terminal } = await contextOf(command);
    const wasThere = await forgetLogin(server);
    terminal.out(wasThere ? `the login at ${server} is forgotten\n` : `there was no login at ${server}\n`);
  });
}
