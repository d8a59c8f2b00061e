import { type Command, Option } from 'commander';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { optionParser, readOptionValue } from '../option-value.ts';
import { removeLogin, saveLogin } from '../settings/logins.ts';
import { audienceOption, type ExchangeFlags, identityOption, tokenRequestOf } from './exchange-flags.ts';
import { showStatus } from './status.ts';

export function addLogin(auth: Command): void {
  const command = auth
    .command('login')
    .description('log in to a server with an OIDC token; later commands use the login')
    .addOption(
      new Option('--id-token <@file>', 'the OIDC token: @file, or - for standard input')
        .argParser(optionParser(readOptionValue))
        .makeOptionMandatory(),
    )
    .addOption(identityOption())
    .option('--identity-provider <uid>', 'the identity provider that issued the token')
    .addOption(audienceOption());
  addClientOptions(command);
  addExamples(
    command,
    'wharf auth login --server https://wharf.example.com --id-token @token.txt',
    'curl -s "$TOKEN_URL" | jq -r .value | wharf auth login --id-token - --identity $IDENTITY',
  );
  command.action(async ({ idToken, ...flags }: ExchangeFlags & { idToken: string }) => {
    const context = await readContext(command);
    const { exchangeToken } = await import('./token-exchange.ts');
    const login = await exchangeToken(context, idToken, tokenRequestOf(flags));
    await saveLogin(context.server, login);
    await showStatus({ ...context, token: async () => login.token });
  });
}

export function addLogout(auth: Command): void {
  const command = addClientOptions(auth.command('logout').description('remove the saved login at a server'));
  addExamples(command, 'wharf auth logout', 'wharf auth logout --server https://wharf.example.com');
  command.action(async () => {
    const { server, terminal } = await readContext(command);
    const wasRemoved = await removeLogin(server);
    terminal.out(wasRemoved ? `removed the login at ${server}\n` : `there was no login at ${server}\n`);
  });
}
