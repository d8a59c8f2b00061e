import { url as inspectorUrl } from 'node:inspector';
import type { Command } from 'commander';
import { addressNotice } from '../../address-notice.ts';
import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Config, flagOf, type Setting, type SettingFlags, type SettingName, settings } from '../../config.ts';
import { type LoadedSettings, type LoadFlags, loadSettings } from '../../load-settings.ts';
import { secretFileKeyOf, variableOfKey } from '../../setting-sources.ts';
import { stopLimitMs, stopTimesOf } from '../../stop-times.ts';
import { addExamples } from '../help.ts';
import { banner, commandOf } from './banner.ts';
import { claimData } from './claim-data.ts';
import { createReload } from './reload.ts';
import { type RunningServer, startFailureMessage, startInProcess, startWorker, startWorkers } from './run-server.ts';
import { addSettingOptions } from './setting-options.ts';
import { stopOnSignals } from './signals.ts';
import { startStopLimit } from './stop-limit.ts';
import { isWorker, reportStart } from './worker-processes.ts';

const SUPERVISOR_MARGIN_MS = 5_000;

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
  const loaded = await loadSettings(flags, process.env);
  const { config } = loaded;
  // Loaded here so that the other commands start without loading the server.
  const { createLogger } = await import('../../base/log.ts');
  const log = createLogger({ level: config.logLevel });
  process.on('uncaughtException', (error) => {
    log.error({ error }, 'crashed');
    process.exit(1);
  });
  // Without a listener, SIGHUP would end the process.
  let reload = (): void => log.warn({}, 'SIGHUP is ignored until the server has started');
  process.on('SIGHUP', () => reload());
  const server = isWorker ? await startWorker(loaded, log) : await startFirst(flags, loaded, log);
  const limitStop = (): void => startStopLimit(limitOf(config), log);
  stopOnSignals({ stop: server.stop, limitStop, log, clock: systemClock, process });
  reload = createReload({
    config,
    load: async () => (await loadSettings(flags, process.env)).config,
    apply(next) {
      log.setLevel(next.logLevel);
      server.reload(next);
    },
    log,
  });
  if (isWorker) await reportStart({ started: server.started });
  else process.stdout.write(banner(server.started, commandOf(process.env)));
}

/** Starts the process that users start: it serves itself, or its workers do. */
async function startFirst(flags: LoadFlags, loaded: LoadedSettings, log: Log): Promise<RunningServer> {
  const { config, file, warnings } = loaded;
  if (file !== undefined) log.info({ file }, 'read the settings file');
  for (const warning of warnings) log.warn({}, warning);
  warnAboutStart(flags, log);
  const claim = await claimData(config, log).catch((error: unknown) => {
    throw new Error(startFailureMessage(error, config));
  });
  const server = await (config.workers > 1 ? startWorkers(config, log) : startInProcess(loaded, log));
  claim.record(server.started);
  const notice = addressNotice(config, server.started.url);
  if (notice !== undefined) log.warn({}, notice);
  return { ...server, stop: () => server.stop().finally(claim.release) };
}

/** The supervisor first lets its workers reach their limit, and kills those that do not. */
const limitOf = (config: Config): number =>
  stopLimitMs(stopTimesOf(config)) + (config.workers > 1 && !isWorker ? SUPERVISOR_MARGIN_MS : 0);

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
