import { Argument, type Command } from 'commander';
import { ConfigError } from '../config-values.ts';
import { usageError } from './exit-codes.ts';
import { addExamples } from './help.ts';
import { terminalOf } from './output/terminal.ts';
import { addConfigShow } from './server/config-show.ts';
import { type ConfigKey, configKeys, configPath, readConfig, setConfig, unsetConfig } from './settings/config-file.ts';

export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description('defaults for the options --server and --output, and the settings of a server');
  addExamples(config, 'wharf config set server https://wharf.example.com', 'wharf config show');
  const key = () => new Argument('<key>', 'the option').choices(configKeys);
  const { out } = terminalOf(config);

  const set = config.command('set').description('save a default').addArgument(key()).argument('<value>', 'the value');
  addExamples(set, 'wharf config set server https://wharf.example.com', 'wharf config set output json');
  set.action(async (name: ConfigKey, text: string) => {
    await setConfig(name, text).catch((error: unknown) => {
      throw error instanceof ConfigError ? usageError(error.message) : error;
    });
  });

  const get = config.command('get').description('print a default').addArgument(key());
  addExamples(get, 'wharf config get server');
  get.action(async (name: ConfigKey) => {
    const { [name]: value } = await readConfig();
    if (value === undefined) throw new Error(`${name} is not set in ${configPath()}`);
    out(`${value}\n`);
  });

  const list = config.command('list').description('print all defaults');
  addExamples(list, 'wharf config list');
  list.action(async () => {
    for (const [name, value] of Object.entries(await readConfig())) out(`${name}=${value}\n`);
  });

  const unset = config.command('unset').description('remove a default').addArgument(key());
  addExamples(unset, 'wharf config unset server');
  unset.action((name: ConfigKey) => unsetConfig(name));

  addConfigShow(config);
}
