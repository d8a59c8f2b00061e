import { X509Certificate } from 'node:crypto';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { settings } from '../config.ts';
import { ConfigError, file, origin } from '../config-values.ts';
import { CliError, ExitCode } from './exit-codes.ts';
import { type Terminal, terminalOf } from './output/terminal.ts';
import { type Output, outputs, readConfig } from './settings/config-file.ts';
import { freshLogin } from './settings/logins.ts';

const DEFAULT_SERVER = 'http://127.0.0.1:8080';

/** What every command that talks to a server knows. */
export interface Context {
  /** Without a slash at the end. */
  readonly server: string;
  /** A certificate (PEM) to trust beside those of the system. */
  readonly ca: string | undefined;
  readonly output: Output;
  readonly terminal: Terminal;
  /** The token that was given, else that of the cached login, else a fresh one of the data directory's owner. */
  token(): Promise<string>;
}

interface ClientOptions {
  readonly server?: string;
  readonly token?: string;
  readonly ca?: string;
  readonly data: string;
  readonly output?: Output;
}

const connection = (flags: string, meaning: string): Option => new Option(flags, meaning).helpGroup('Connection:');

/** Gives a command the options that all client commands share. */
export const addClientOptions = (command: Command): Command =>
  command
    .addOption(new Option('-o, --output <format>', 'how to print (default: "table")').choices(outputs))
    .addOption(
      connection('--server <url>', `the server to talk to (default: "${DEFAULT_SERVER}")`)
        .env('WHARF_SERVER')
        .argParser(checked((text) => text && origin(text))),
    )
    .addOption(
      connection('--token <token>', "a bearer token (default: the cached login, else the data directory's owner)").env(
        'WHARF_TOKEN',
      ),
    )
    .addOption(
      connection('--ca <file>', 'a certificate (PEM) to trust beside those of the system')
        .env('WHARF_CA')
        .argParser(checked((text) => text && certificate(text))),
    )
    .addOption(dataOption().helpGroup('Connection:'));

/** The data directory of a server on this machine. */
export const dataOption = (): Option =>
  new Option('--data <dir>', settings.data.meaning)
    .env(settings.data.variable)
    .default(settings.data.parse(settings.data.default), settings.data.default)
    .argParser(checked((text) => settings.data.parse(text || settings.data.default)));

function certificate(path: string): string {
  const pem = file(path);
  try {
    new X509Certificate(pem);
  } catch {
    throw new ConfigError('it is not a certificate in PEM form');
  }
  return pem;
}

/** Reads what `addClientOptions` declared: a flag wins over its variable, that over the configuration file. */
export async function contextOf(command: Command): Promise<Context> {
  const options = command.opts<ClientOptions>();
  const config = await readConfig();
  // An empty value counts as unset, as container tools like to pass it.
  const server = options.server || config.server || DEFAULT_SERVER;
  const ca = options.ca || undefined;
  const isFlag = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  return {
    server,
    ca,
    output: options.output ?? config.output ?? 'table',
    terminal: terminalOf(command),
    async token() {
      const given = options.token?.trim();
      // Naming a data directory is naming its owner, and a flag wins over a variable.
      const namesOwner = isFlag('data') && !isFlag('token');
      if (given && !namesOwner) return given;
      if (namesOwner) return ownerToken(options.data);
      return (await cachedToken(server, ca)) ?? localOwnerToken(server, options.data);
    },
  };
}

async function cachedToken(server: string, ca: string | undefined): Promise<string | undefined> {
  const login = await freshLogin(server, async (stale) => {
    const { renewLogin } = await import('./auth/session.ts');
    return renewLogin({ server, ca }, stale);
  });
  return login?.token;
}

/** Only a server on this machine can be the one of the data directory. */
async function localOwnerToken(server: string, data: string): Promise<string> {
  if (/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(server).hostname)) return ownerToken(data);
  throw new CliError(
    ExitCode.unauthenticated,
    `no token for ${server}: log in with 'wharf auth login', or give one with --token (WHARF_TOKEN)`,
  );
}

/** A token for the owner that the first start put into a data directory. */
export async function ownerToken(data: string, options: { lifetimeSeconds?: number } = {}): Promise<string> {
  const { mintOwnerToken, readOwner } = await import('../identity/owner/owner-key.ts');
  if ((await readOwner(data)) === undefined) {
    throw new CliError(
      ExitCode.unauthenticated,
      `no owner in ${data}: start the server once with this data directory, or log in with 'wharf auth login'`,
    );
  }
  return mintOwnerToken(data, options);
}

/** Makes a value that does not parse an error of usage. */
export function checked<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw error instanceof ConfigError ? new InvalidArgumentError(error.message) : error;
    }
  };
}
