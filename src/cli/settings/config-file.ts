import { ConfigError, origin } from '../../config-values.ts';
import { readObject, userFile, writeObject } from './private-file.ts';

export type Output = 'table' | 'json';

/** What a user need not say each time. */
export interface ClientConfig {
  readonly server?: string;
  readonly output?: Output;
}
export type ConfigKey = keyof ClientConfig;

export const outputs: readonly Output[] = ['table', 'json'];

/** Each checks a value and answers how it is kept; throws a ConfigError that says what would be right. */
const parsers: { readonly [K in ConfigKey]: (text: string) => NonNullable<ClientConfig[K]> } = {
  server: origin,
  output(text) {
    const found = outputs.find((output) => output === text);
    if (found === undefined) throw new ConfigError(`write one of ${outputs.join(', ')}`);
    return found;
  },
};

export const configKeys = Object.keys(parsers) as readonly ConfigKey[];

export const configPath = (): string => userFile('config.json');

/** The configuration of this user. Throws a ConfigError at a value that makes no sense. */
export async function readConfig(): Promise<ClientConfig> {
  const config: Record<string, unknown> = {};
  for (const [key, value] of Object.entries((await readObject(configPath())) ?? {})) {
    const known = configKeys.find((name) => name === key);
    if (known === undefined) throw new ConfigError(`${configPath()}: ${key} is not one of ${configKeys.join(', ')}`);
    config[known] = parseConfigValue(known, String(value), `${configPath()}: ${key}`);
  }
  return config;
}

export async function setConfig(key: ConfigKey, text: string): Promise<void> {
  const value = parseConfigValue(key, text, key);
  await writeObject(configPath(), { ...(await readConfig()), [key]: value });
}

export async function unsetConfig(key: ConfigKey): Promise<void> {
  const { [key]: _gone, ...rest } = await readConfig();
  await writeObject(configPath(), rest);
}

function parseConfigValue(key: ConfigKey, text: string, place: string): string {
  try {
    return parsers[key](text);
  } catch (error) {
    throw error instanceof ConfigError
      ? new ConfigError(`${place}=${JSON.stringify(text.slice(0, 100))} cannot be used: ${error.message}`)
      : error;
  }
}
