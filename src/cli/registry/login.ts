import type { Command } from 'commander';
import { addClientOptions, readContext } from '../client-options.ts';
import type { ClientContext } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import {
  dockerConfigPath,
  HELPER,
  isHelperInstalled,
  removeCredentialHelper,
  setCredentialHelper,
} from './docker-config.ts';

export function addLogin(registry: Command): void {
  const command = addClientOptions(
    registry
      .command('login')
      .description('configure docker, podman, skopeo, crane, oras, cosign and helm to use your login at a server'),
  );
  addExamples(command, 'wharf registry login', 'wharf registry login --server https://wharf.example.com');
  command.action(async () => {
    const context = await readContext(command);
    const host = new URL(context.server).host;
    await requireAccess(context);
    await setCredentialHelper(host);
    context.terminal.out(`clients of ${host} now use your login at ${context.server} (${dockerConfigPath()})\n`);
    if (isHelperInstalled()) return;
    context.terminal.err(
      `wharf: clients call docker-credential-${HELPER}, which is not in your PATH: run 'npm install -g .' in the clone\n`,
    );
  });
}

/** Checks the login now, so that it does not fail later during a push. */
async function requireAccess({ server, ca, token }: ClientContext): Promise<void> {
  const { sendRequest } = await import('../client/http.ts');
  const headers = { authorization: `Bearer ${await token()}` };
  const { status } = await sendRequest({ verb: 'GET', server, ca, path: '/v2/', headers });
  if (status === 401)
    throw new CliError(ExitCode.unauthenticated, `${server} rejects your token: log in with 'wharf auth login'`);
  if (status !== 200) throw new Error(`${server} responded with ${status}: check that it is a Wharfinger server`);
}

export function addLogout(registry: Command): void {
  const command = addClientOptions(
    registry
      .command('logout')
      .description('undo `wharf registry login`; to remove the login itself, use `wharf auth logout`'),
  );
  addExamples(command, 'wharf registry logout', 'wharf registry logout --server https://wharf.example.com');
  command.action(async () => {
    const { server, terminal } = await readContext(command);
    const host = new URL(server).host;
    const wasSet = await removeCredentialHelper(host);
    terminal.out(
      wasSet ? `clients of ${host} no longer use your login\n` : `clients of ${host} did not use your login\n`,
    );
  });
}
