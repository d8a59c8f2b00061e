import { url as inspectorUrl } from 'node:inspector';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import {
  flagOf,
  loadConfig,
  type Setting,
  type SettingFlags,
  type SettingName,
  settings,
  unknownVariables,
} from '../../config.ts';
import { addExamples } from '../help.ts';
import { banner, commandOf } from './banner.ts';
import { runWorker, startInProcess, startWorkers } from './run-server.ts';
import { stopOnSignals } from './signals.ts';
import { isWorker } from './worker-processes.ts';

export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('run the server; each flag can also be set by an environment variable');
  for (const setting of Object.values(settings)) {
    command.option(`${flagOf(setting)} <${setting.value}>`, describe(setting));
  }
  addExamples(
    command,
    'wharf serve --listen :8080 --data /srv/wharf',
    'WHARF_LISTEN=:8080 WHARF_DATA=/srv/wharf wharf serve',
  );
  command.action(serve);
}

const describe = ({ description, variable, default: defaultText }: Setting): string =>
  `${description} (${defaultText === undefined ? '' : `default: "${defaultText}", `}env: ${variable})`;

async function serve(flags: SettingFlags): Promise<void> {
  const config = loadConfig(flags, process.env);
  // Loaded here so that the other commands start without loading the server.
  const { createLogger } = await import('../../base/log.ts');
  const log = createLogger({ level: config.logLevel });
  process.on('uncaughtException', (error) => {
    log.error({ error }, 'crashed');
    process.exit(1);
  });
  if (isWorker) return runWorker(config, log);
  warnAboutStart(flags, log);
  const { started, stop } = await (config.workers > 1 ? startWorkers(config, log) : startInProcess(config, log));
  stopOnSignals({ stop, log, clock: systemClock, process });
  process.stdout.write(banner(started, commandOf(process.env)));
}

/** Warns about a way of starting that is valid and yet a mistake. */
function warnAboutStart(flags: SettingFlags, log: Log): void {
  for (const variable of unknownVariables(process.env)) {
    log.warn({ variable }, `${variable} is not a setting and is ignored; 'wharf serve --help' lists all settings`);
  }
  for (const [name, setting] of Object.entries(settings) as [SettingName, Setting][]) {
    if (!setting.secret || !flags[name]) continue;
    log.warn(
      { variable: setting.variable },
      `every user can read ${flagOf(setting)} in the process list: use the variable`,
    );
  }
  const debuggerUrl = inspectorUrl();
  if (debuggerUrl !== undefined) {
    const risk = 'every program on this machine can run code in the server; start it without --inspect';
    log.warn({ debuggerUrl }, `the debugger of Node is open: ${risk}`);
  }
}
