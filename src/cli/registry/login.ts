import type { Command } from 'commander';
import { addClientOptions, type Context, contextOf } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { example } from '../help.ts';
import { dockerConfigPath, HELPER, isHelperInstalled, setHelper, unsetHelper } from './docker-config.ts';

export function addLogin(registry: Command): void {
  const command = addClientOptions(
    registry
      .command('login')
      .description('let docker, podman, skopeo, crane, oras, cosign and helm use your login at a server'),
  );
  example(command, 'wharf registry login', 'wharf registry login --server https://wharf.example.com');
  command.action(async () => {
    const context = await contextOf(command);
    const host = new URL(context.server).host;
    await requireAccess(context);
    await setHelper(host);
    context.terminal.out(`clients of ${host} now use your login at ${context.server} (${dockerConfigPath()})\n`);
    if (isHelperInstalled()) return;
    context.terminal.err(
      `wharf: they call docker-credential-${HELPER}, which is not in your PATH: install it with 'npm install -g .' in the clone\n`,
    );
  });
}

/** A login that does not work had better be found out here than in the middle of a push. */
async function requireAccess({ server, ca, token }: Context): Promise<void> {
  const { send } = await import('../client/http.ts');
  const headers = { authorization: `Bearer ${await token()}` };
  const { status } = await send({ verb: 'GET', server, ca, path: '/v2/', headers });
  if (status === 401)
    throw new CliError(ExitCode.unauthenticated, `${server} does not take your token: log in with 'wharf auth login'`);
  if (status !== 200) throw new Error(`${server} answered ${status}: is it a Wharfinger server?`);
}

export function addLogout(registry: Command): void {
  const command = addClientOptions(
    registry.command('logout').description('end that; the login itself stays, and ends with `wharf auth logout`'),
  );
  example(command, 'wharf registry logout', 'wharf registry logout --server https://wharf.example.com');
  command.action(async () => {
    const { server, terminal } = await contextOf(command);
    const host = new URL(server).host;
    const did = await unsetHelper(host);
    terminal.out(did ? `clients of ${host} no longer use your login\n` : `clients of ${host} did not use your login\n`);
  });
}
