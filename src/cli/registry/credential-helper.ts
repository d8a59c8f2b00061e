import { Command } from 'commander';
import { addClientOptions, contextOf } from '../context.ts';
import { readConfig } from '../settings/config-file.ts';
import { findLogin, forgetLogin, listLogins, saveLogin } from '../settings/logins.ts';

/** What docker-compatible clients say when they ask for credentials. */
export interface Asked {
  readonly verb: string | undefined;
  readonly input: string;
}

/** What goes to standard output, and how the program ends. */
export interface Told {
  readonly text: string;
  readonly code: 0 | 1;
}

/** The words by which docker knows that there are none, and goes on without. */
const NOT_FOUND = 'credentials not found in native keychain';
/** Any user name will do beside a token. */
const USER = '_token';

/**
 * Docker's credential helper protocol (https://github.com/docker/docker-credential-helpers): a verb as argument, a server
 * or JSON on standard input, JSON or a reason on standard output.
 */
export async function help({ verb, input }: Asked): Promise<Told> {
  try {
    switch (verb) {
      case 'get':
        return told(JSON.stringify(await get(input.trim())));
      case 'store':
        return told(await store(input));
      case 'erase':
        await forgetLogin(await serverOf(input.trim()));
        return told('');
      case 'list':
        return told(JSON.stringify(Object.fromEntries((await listLogins()).map((server) => [server, USER]))));
      default:
        return { text: 'usage: docker-credential-wharf get|store|erase|list\n', code: 1 };
    }
  } catch (error) {
    return { text: `${(error as Error).message}\n`, code: 1 };
  }
}

const told = (text: string): Told => ({ text: text === '' ? '' : `${text}\n`, code: 0 });

async function get(asked: string) {
  const server = await serverOf(asked);
  const command = addClientOptions(new Command('docker-credential-wharf')).exitOverride();
  command.parse(['--server', server], { from: 'user' });
  const context = await contextOf(command);
  let secret: string;
  try {
    secret = await context.token();
  } catch {
    throw new Error(NOT_FOUND);
  }
  return { ServerURL: asked, Username: USER, Secret: secret };
}

/** What `docker login` brings is a token that somebody has from elsewhere. */
async function store(input: string): Promise<string> {
  const { ServerURL, Secret } = JSON.parse(input) as { ServerURL?: unknown; Secret?: unknown };
  if (typeof ServerURL !== 'string' || typeof Secret !== 'string')
    throw new Error('send ServerURL, Username and Secret as JSON');
  const server = await serverOf(ServerURL);
  await saveLogin(server, { token: Secret, audiences: [server] });
  return '';
}

/** Clients name a registry by its host; our logins are by address. Without one, only this machine speaks plain HTTP. */
async function serverOf(asked: string): Promise<string> {
  const host = asked.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
  if (!URL.canParse(`https://${host}`))
    throw new Error(`${JSON.stringify(asked.slice(0, 100))} is not the host of a registry`);
  const { server: configured = '' } = await readConfig();
  if (URL.canParse(configured) && new URL(configured).host === host) return configured;
  for (const server of [`https://${host}`, `http://${host}`]) if (await findLogin(server)) return server;
  return `${/^(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?$/.test(host) ? 'http' : 'https'}://${host}`;
}
