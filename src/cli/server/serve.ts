import { url as inspectorUrl } from 'node:inspector';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { flagOf, type Setting, type SettingFlags, type SettingName, settings } from '../../config.ts';
import { type LoadFlags, loadSettings } from '../../load-settings.ts';
import { addressNotice } from '../../server-address.ts';
import { secretFileKeyOf, variableOfKey } from '../../setting-sources.ts';
import { addExamples } from '../help.ts';
import { banner, commandOf } from './banner.ts';
import { claimData } from './claim-data.ts';
import { runWorker, startFailureMessage, startInProcess, startWorkers } from './run-server.ts';
import { addSettingOptions } from './setting-options.ts';
import { stopOnSignals } from './signals.ts';
import { isWorker } from './worker-processes.ts';

export function addServe(program: Command): void {
  const command = addSettingOptions(
    program
      .command('serve')
      .description('run the server; each flag can also be set by an environment variable or in the settings file'),
  );
  addExamples(
    command,
    'wharf serve --listen :8080 --data /srv/wharf',
    'WHARF_LISTEN=:8080 WHARF_DATA=/srv/wharf wharf serve',
    'wharf serve --config /etc/wharfinger/wharf.yaml',
  );
  command.action(serve);
}

async function serve(flags: LoadFlags): Promise<void> {
  const { config, file, warnings } = await loadSettings(flags, process.env);
  // Loaded here so that the other commands start without loading the server.
  const { createLogger } = await import('../../base/log.ts');
  const log = createLogger({ level: config.logLevel });
  process.on('uncaughtException', (error) => {
    log.error({ error }, 'crashed');
    process.exit(1);
  });
  if (isWorker) return runWorker(config, log);
  if (file !== undefined) log.info({ file }, 'read the settings file');
  for (const warning of warnings) log.warn({}, warning);
  warnAboutStart(flags, log);
  const claim = await claimData(config, log).catch((error: unknown) => {
    throw new Error(startFailureMessage(error, config));
  });
  const { started, stop } = await (config.workers > 1 ? startWorkers(config, log) : startInProcess(config, log));
  const stopAndRelease = (): Promise<void> => stop().finally(claim.release);
  stopOnSignals({ stop: stopAndRelease, log, clock: systemClock, process });
  claim.record(started);
  const notice = addressNotice(config, started.url);
  if (notice !== undefined) log.warn({}, notice);
  process.stdout.write(banner(started, commandOf(process.env)));
}

/** Warns about a way of starting that is valid and yet a mistake. */
function warnAboutStart(flags: SettingFlags, log: Log): void {
  for (const [name, setting] of Object.entries(settings) as [SettingName, Setting][]) {
    if (!setting.secret || !flags[name]) continue;
    log.warn(
      { variable: setting.variable },
      `every user can read ${flagOf(setting)} in the process list: use the variable ${variableOfKey(secretFileKeyOf(setting))}`,
    );
  }
  const debuggerUrl = inspectorUrl();
  if (debuggerUrl !== undefined) {
    const risk = 'every program on this machine can run code in the server; start it without --inspect';
    log.warn({ debuggerUrl }, `the debugger of Node is open: ${risk}`);
  }
}
