import { type Command, Option } from 'commander';
import { configOf, type Setting, type SettingName, settings } from '../../config.ts';
import { type FoundSettings, findSettings, type LoadFlags } from '../../load-settings.ts';
import type { ValueOrigin, WrittenValue } from '../../setting-sources.ts';
import { defaultFiles } from '../../settings-file.ts';
import { addExamples } from '../help.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { escapeForTerminal, jsonText } from '../output/text.ts';
import { type Output, outputs, readConfig } from '../settings/config-file.ts';
import { addSettingOptions } from './setting-options.ts';

/** Adds the command that prints the settings of the server. It takes the flags of `wharf serve`. */
export function addConfigShow(config: Command): void {
  const command = config
    .command('show')
    .description("print the settings that 'wharf serve' uses here, and where each comes from")
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  addSettingOptions(command);
  addExamples(command, 'wharf config show', 'wharf config show --config /etc/wharfinger/wharf.yaml -o json');
  command.action(async ({ output, ...flags }: LoadFlags & { readonly output?: Output }) => {
    const { out, err, width } = terminalOf(command);
    const found = await findSettings(flags, process.env);
    const rows = rowsOf(found);
    if ((output ?? (await readConfig()).output) === 'json') {
      out(jsonText({ file: found.file ?? null, settings: rows }, width !== undefined));
    } else {
      out(`settings file: ${found.file ?? `none (looked for ${defaultFiles.join(' and ')})`}\n\n`);
      const cells = rows.map(({ variable, value, source }) => [variable, value ?? '', source].map(escapeForTerminal));
      out(tableText(['SETTING', 'VALUE', 'SOURCE'], cells, width));
    }
    for (const warning of found.warnings) err(`wharf: ${warning}\n`);
    // After the table, which helps to find the mistake.
    configOf(found.written, process.env);
  });
}

function rowsOf({ written }: FoundSettings) {
  return (Object.entries(settings) as [SettingName, Setting][]).map(([name, setting]) => ({
    variable: setting.variable,
    value: shownValue(setting, written[name]),
    source: sourceText(written[name]),
  }));
}

function shownValue({ secret }: Setting, written: WrittenValue | undefined): string | null {
  if (written === undefined) return null;
  return secret ? '[redacted]' : written.text;
}

/** Such as `/etc/wharfinger/wharf.yaml:3`, with the file of a secret. */
function sourceText(written: WrittenValue | undefined): string {
  if (written === undefined) return 'not set';
  const { secretFile } = written.origin;
  return secretFile === undefined ? originText(written.origin) : `${originText(written.origin)} (${secretFile})`;
}

function originText(origin: ValueOrigin): string {
  switch (origin.from) {
    case 'flag':
      return origin.flag;
    case 'variable':
      return origin.variable;
    case 'file':
      return `${origin.file}:${origin.line}`;
    case 'default':
      return 'default';
  }
}
