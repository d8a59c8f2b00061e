import { isDeepStrictEqual } from 'node:util';
import type { ProcessLog } from '../../base/log.ts';
import { type Config, ConfigError, type Setting, settings } from '../../config.ts';

export interface ReloadOptions {
  /** The configuration of the start. */
  readonly config: Config;
  /** Reads the settings again. Throws a ConfigError if one is invalid. */
  readonly load: () => Promise<Config>;
  /** Receives the configuration in force: settings that need a restart have their former values. */
  readonly apply: (config: Config) => void;
  readonly log: ProcessLog;
}

/**
 * Returns a function that reads the settings again, applies those that are `reloadable`, and logs what has changed. If a
 * setting is invalid, all keep their values.
 */
export function createReload({ config, load, apply, log }: ReloadOptions): () => void {
  let current = config;
  /** The reloads so far: they run one after the other. */
  let last = Promise.resolve();

  async function reload(): Promise<void> {
    let next: Config;
    try {
      next = await load();
    } catch (error) {
      const problem = error instanceof ConfigError ? error.message : error;
      log.error({ problem }, 'cannot reload the settings: all of them keep their values');
      return;
    }
    const changed = Object.keys(next).filter((key) => !isDeepStrictEqual(valueIn(current, key), valueIn(next, key)));
    const reloaded = changed.filter((key) => canReload(key, current, next));
    const others = changed.filter((key) => !reloaded.includes(key));
    current = { ...current, ...Object.fromEntries(reloaded.map((key) => [key, valueIn(next, key)])) };
    apply(current);
    log.info({ changed: reloaded.map(variableOf) }, 'reloaded the settings');
    if (others.length > 0) {
      log.warn({ changed: others.map(variableOf) }, 'changed settings that need a restart keep their values');
    }
  }

  return () => {
    last = last.then(reload);
  };
}

const settingOf = (key: string): Setting | undefined => (settings as Record<string, Setting>)[key];

const valueIn = (config: Config, key: string): unknown => config[key as keyof Config];

/** The configuration has one value for both TLS files. */
const variableOf = (key: string): string =>
  key === 'tls' ? `${settings.tlsCert.variable}, ${settings.tlsKey.variable}` : (settingOf(key)?.variable ?? key);

function canReload(key: string, current: Config, next: Config): boolean {
  // A port serves either only TLS or none.
  if (key === 'tls') return current.tls !== undefined && next.tls !== undefined;
  return settingOf(key)?.reloadable ?? false;
}
