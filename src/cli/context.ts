import { type Command, InvalidArgumentError, Option } from 'commander';
import { settings } from '../config.ts';
import { ConfigError, origin } from '../config-values.ts';

const DEFAULT_SERVER = 'http://127.0.0.1:8080';

/** What every command that talks to a server knows. */
export interface Context {
  /** Without a slash at the end. */
  readonly server: string;
  /** The token that was given, else a fresh one of the data directory's owner. */
  token(): Promise<string>;
  readonly output: 'table' | 'json';
}

/** Gives a command the options that all client commands share. */
export const addClientOptions = (command: Command): Command =>
  command
    .addOption(
      new Option('--server <url>', 'the server to talk to')
        .env('WHARF_SERVER')
        .default(DEFAULT_SERVER)
        .argParser(checked((text) => origin(text || DEFAULT_SERVER))),
    )
    .addOption(new Option('--token <token>', "a bearer token (default: the data directory's owner)").env('WHARF_TOKEN'))
    .addOption(dataOption())
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table'));

/** The data directory of a server on this machine. */
export const dataOption = (): Option =>
  new Option('--data <dir>', settings.data.meaning)
    .env(settings.data.variable)
    .default(settings.data.parse(settings.data.default), settings.data.default)
    .argParser(checked((text) => settings.data.parse(text || settings.data.default)));

/** Reads what `addClientOptions` declared. */
export function contextOf(command: Command): Context {
  const { server, token, data, output } = command.opts<{
    server: string;
    token?: string;
    data: string;
    output: 'table' | 'json';
  }>();
  return { server, output, token: async () => token?.trim() || ownerToken(data) };
}

/** A token for the owner that the first start put into a data directory. */
export async function ownerToken(data: string, options: { lifetimeSeconds?: number } = {}): Promise<string> {
  const { mintOwnerToken } = await import('../identity/owner.ts');
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
