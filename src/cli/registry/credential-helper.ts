import { Command } from 'commander';
import { addClientOptions, readContext } from '../client-options.ts';
import { readConfig } from '../settings/config-file.ts';
import { findLogin, listLogins, removeLogin, saveLogin } from '../settings/logins.ts';

/** The command and the standard input of a call by a docker client. */
export interface HelperRequest {
  readonly command: string | undefined;
  readonly input: string;
}

/** The standard output and the exit code. */
export interface HelperResponse {
  readonly text: string;
  readonly code: 0 | 1;
}

/** The text by which docker recognizes that there are no credentials, and continues without. */
const NOT_FOUND = 'credentials not found in native keychain';
/** The server ignores the user name of a token. */
const USER = '_token';

/**
 * Implements docker's credential helper protocol (https://github.com/docker/docker-credential-helpers): a command as
 * argument, a server or JSON on standard input, JSON or an error message on standard output.
 */
export async function runCredentialHelper({ command, input }: HelperRequest): Promise<HelperResponse> {
  try {
    switch (command) {
      case 'get':
        return success(JSON.stringify(await get(input.trim())));
      case 'store':
        return success(await store(input));
      case 'erase':
        await removeLogin(await serverOf(input.trim()));
        return success('');
      case 'list':
        return success(JSON.stringify(Object.fromEntries((await listLogins()).map((server) => [server, USER]))));
      default:
        return { text: 'usage: docker-credential-wharf get|store|erase|list\n', code: 1 };
    }
  } catch (error) {
    return { text: `${(error as Error).message}\n`, code: 1 };
  }
}

const success = (text: string): HelperResponse => ({ text: text === '' ? '' : `${text}\n`, code: 0 });

async function get(registry: string) {
  const server = await serverOf(registry);
  const command = addClientOptions(new Command('docker-credential-wharf')).exitOverride();
  command.parse(['--server', server], { from: 'user' });
  const context = await readContext(command);
  let secret: string;
  try {
    secret = await context.token();
  } catch {
    throw new Error(NOT_FOUND);
  }
  return { ServerURL: registry, Username: USER, Secret: secret };
}

/** Saves the token that the user gave to `docker login`. */
async function store(input: string): Promise<string> {
  const { ServerURL, Secret } = JSON.parse(input) as { ServerURL?: unknown; Secret?: unknown };
  if (typeof ServerURL !== 'string' || typeof Secret !== 'string')
    throw new Error('send ServerURL, Username and Secret as JSON');
  const server = await serverOf(ServerURL);
  await saveLogin(server, { token: Secret, audiences: [server] });
  return '';
}

/**
 * Returns the server URL of a registry, which clients identify by its host. Uses the configured server or a login
 * with this host, else https. Only hosts on this machine default to http.
 */
async function serverOf(registry: string): Promise<string> {
  const host = registry.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
  if (!URL.canParse(`https://${host}`))
    throw new Error(`${JSON.stringify(registry.slice(0, 100))} is not the host of a registry`);
  const { server: configured = '' } = await readConfig();
  if (URL.canParse(configured) && new URL(configured).host === host) return configured;
  for (const server of [`https://${host}`, `http://${host}`]) if (await findLogin(server)) return server;
  return `${/^(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?$/.test(host) ? 'http' : 'https'}://${host}`;
}
