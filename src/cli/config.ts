import { Argument, type Command } from 'commander';
import { ConfigError } from '../config-values.ts';
import { misused } from './exit-codes.ts';
import { example } from './help.ts';
import { terminalOf } from './output/terminal.ts';
import { type ConfigKey, configKeys, configPath, readConfig, setConfig, unsetConfig } from './settings/config-file.ts';

export function addConfig(program: Command): void {
  const config = program.command('config').description('what you need not say each time');
  example(config, 'wharf config set server https://wharf.example.com');
  const key = () => new Argument('<key>', 'what to keep').choices(configKeys);
  const { out } = terminalOf(config);

  const set = config.command('set').description('keep a value').addArgument(key()).argument('<value>', 'the value');
  example(set, 'wharf config set server https://wharf.example.com', 'wharf config set output json');
  set.action(async (name: ConfigKey, text: string) => {
    await setConfig(name, text).catch((error: unknown) => {
      throw error instanceof ConfigError ? misused(error.message) : error;
    });
  });

  const get = config.command('get').description('print a value').addArgument(key());
  example(get, 'wharf config get server');
  get.action(async (name: ConfigKey) => {
    const { [name]: value } = await readConfig();
    if (value === undefined) throw new Error(`${name} is not set in ${configPath()}`);
    out(`${value}\n`);
  });

  const list = config.command('list').description('print all values that are kept');
  example(list, 'wharf config list');
  list.action(async () => {
    for (const [name, value] of Object.entries(await readConfig())) out(`${name}=${value}\n`);
  });

  const unset = config.command('unset').description('forget a value').addArgument(key());
  example(unset, 'wharf config unset server');
  unset.action((name: ConfigKey) => unsetConfig(name));
}
