import { X509Certificate } from 'node:crypto';
import { type Command, Option } from 'commander';
import { settings } from '../config.ts';
import { ConfigError, parseBaseUrl, readFileContent } from '../config-values.ts';
import { findDataDirectory } from '../load-settings.ts';
import { ownerToken } from './auth/owner-token.ts';
import type { ClientContext, Connection } from './context.ts';
import { CliError, ExitCode } from './exit-codes.ts';
import { optionParser } from './option-value.ts';
import { type Terminal, terminalOf } from './output/terminal.ts';
import { type Output, outputs, readConfig } from './settings/config-file.ts';
import { getValidLogin } from './settings/logins.ts';

const DEFAULT_SERVER = 'http://127.0.0.1:8080';

interface ClientOptions {
  readonly server?: string;
  readonly token?: string;
  readonly ca?: string;
  readonly data?: string;
  readonly output?: Output;
}

const connectionOption = (flags: string, description: string): Option =>
  new Option(flags, description).helpGroup('Connection:');

/** Adds the options that all client commands share. */
export const addClientOptions = (command: Command): Command =>
  command
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs))
    .addOption(
      connectionOption('--server <url>', `the URL of the server (default: "${DEFAULT_SERVER}")`)
        .env('WHARF_SERVER')
        .argParser(optionParser((text) => text && parseBaseUrl(text))),
    )
    .addOption(
      connectionOption(
        '--token <token>',
        'a bearer token (default: the token of your login, else one for the owner of the data directory)',
      ).env('WHARF_TOKEN'),
    )
    .addOption(
      connectionOption('--ca <file>', 'a certificate (PEM) to trust in addition to those of the system')
        .env('WHARF_CA')
        .argParser(optionParser((text) => text && readCertificate(text))),
    )
    .addOption(
      connectionOption(
        '--data <dir>',
        `the data directory of a server on this machine (default: that of the settings file, else "${settings.data.default}")`,
      )
        .env(settings.data.variable)
        .argParser(optionParser((text) => text && settings.data.parse(text))),
    );

function readCertificate(path: string): string {
  const pem = readFileContent(path);
  try {
    new X509Certificate(pem);
  } catch {
    throw new ConfigError('the file is not a PEM certificate');
  }
  return pem;
}

/** Reads the options of `addClientOptions`. A flag overrides its variable, which overrides the configuration file. */
export async function readContext(command: Command): Promise<ClientContext> {
  const options = command.opts<ClientOptions>();
  const config = await readConfig();
  // An empty value counts as unset because container tools pass unset variables as empty ones.
  const server = options.server || config.server || DEFAULT_SERVER;
  const ca = options.ca || undefined;
  const isFlag = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  const terminal = terminalOf(command);
  const data = (): Promise<string> => findDataDirectory(options.data, process.env);
  return {
    server,
    ca,
    data,
    output: options.output ?? config.output ?? 'table',
    terminal,
    async token() {
      const token = options.token?.trim();
      // The flag --data selects the owner of that directory. It overrides the variable WHARF_TOKEN.
      const selectsOwner = isFlag('data') && !isFlag('token');
      if (token && !selectsOwner) return token;
      if (selectsOwner) return ownerToken(await data(), terminal);
      return (await loginToken({ server, ca })) ?? localOwnerToken(server, data, terminal);
    },
  };
}

async function loginToken(connection: Connection): Promise<string | undefined> {
  const login = await getValidLogin(connection.server, async (expired) => {
    const { renewLogin } = await import('./auth/token-exchange.ts');
    return renewLogin(connection, expired);
  });
  return login?.token;
}

/** Only a server on this machine can use the local data directory. */
async function localOwnerToken(server: string, data: () => Promise<string>, terminal: Terminal): Promise<string> {
  if (/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(server).hostname)) return ownerToken(await data(), terminal);
  throw new CliError(
    ExitCode.unauthenticated,
    `no token for ${server}: log in with 'wharf auth login', or give one with --token (WHARF_TOKEN)`,
  );
}
