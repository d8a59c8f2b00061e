import { ConfigError, parseBaseUrl } from '../../config-values.ts';
import { readJsonFile, userFile, writeJsonFile } from './private-file.ts';

export type Output = 'table' | 'json';

/** The defaults of a user. */
export interface ClientConfig {
  readonly server?: string;
  readonly output?: Output;
}
export type ConfigKey = keyof ClientConfig;

export const outputs: readonly Output[] = ['table', 'json'];

/** Each returns the value to save. Throws a ConfigError that says what to write instead. */
const parsers: { readonly [K in ConfigKey]: (text: string) => NonNullable<ClientConfig[K]> } = {
  server: parseBaseUrl,
  output(text) {
    const output = outputs.find((known) => known === text);
    if (output === undefined) throw new ConfigError(`write one of ${outputs.join(', ')}`);
    return output;
  },
};

export const configKeys = Object.keys(parsers) as readonly ConfigKey[];

export const configPath = (): string => userFile('config.json');

/** Reads the configuration of the user. Throws a ConfigError for an invalid value. */
export async function readConfig(): Promise<ClientConfig> {
  const config: Record<string, unknown> = {};
  for (const [key, value] of Object.entries((await readJsonFile(configPath())) ?? {})) {
    const configKey = configKeys.find((name) => name === key);
    if (configKey === undefined) {
      throw new ConfigError(`${configPath()}: ${key} is not one of ${configKeys.join(', ')}`);
    }
    config[configKey] = parseConfigValue(configKey, String(value), `${configPath()}: ${key}`);
  }
  return config;
}

export async function setConfig(key: ConfigKey, text: string): Promise<void> {
  const value = parseConfigValue(key, text, key);
  await writeJsonFile(configPath(), { ...(await readConfig()), [key]: value });
}

export async function unsetConfig(key: ConfigKey): Promise<void> {
  const { [key]: _removed, ...rest } = await readConfig();
  await writeJsonFile(configPath(), rest);
}

function parseConfigValue(key: ConfigKey, text: string, source: string): string {
  try {
    return parsers[key](text);
  } catch (error) {
    throw error instanceof ConfigError
      ? new ConfigError(`${source}=${JSON.stringify(text.slice(0, 100))} cannot be used: ${error.message}`)
      : error;
  }
}
