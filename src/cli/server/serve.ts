import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Config, type Flags, flagOf, loadConfig, type Setting, settings, unknownVariables } from '../../config.ts';
import type { StartOptions } from '../../main.ts';
import { messageOf, rootOf } from '../failure.ts';
import { example } from '../help.ts';
import { banner, type Started } from './banner.ts';
import { createDealer } from './connection-balancer.ts';
import { collectOldSpaceSooner } from './old-space.ts';
import { beginAnewIfCompiled } from './restart-from-compile-cache.ts';
import { stopOnSignals } from './signals.ts';
import { metricsOfAll } from './worker-metrics.ts';
import { connectionsFromSupervisor, forkWorker, isWorker, reportStart } from './worker-processes.ts';
import { superviseWorkers, type Worker } from './workers.ts';
import { letYoungSpaceGrow, letYoungSpaceGrowUnderLoad } from './young-space.ts';

export function addServe(program: Command): void {
  const command = program.command('serve').description('run the server; each flag can also be set as a variable');
  for (const setting of Object.values(settings)) {
    command.option(`${flagOf(setting)} <${setting.value}>`, describe(setting));
  }
  example(
    command,
    'wharf serve --listen :8080 --data /srv/wharf',
    'WHARF_LISTEN=:8080 WHARF_DATA=/srv/wharf wharf serve',
  );
  command.action(serve);
}

const describe = ({ meaning, variable, default: preset }: Setting): string =>
  `${meaning} (${preset === undefined ? '' : `default: "${preset}", `}env: ${variable})`;

async function serve(flags: Flags): Promise<void> {
  const config = loadConfig(flags, process.env);
  // Loaded here, so that the other commands start without the server's weight.
  const { createLogger } = await import('../../base/log.ts');
  const log = createLogger({ level: config.logLevel });
  process.on('uncaughtException', (error) => {
    log.error({ error }, 'crashed');
    process.exit(1);
  });
  if (isWorker) return serveAsWorker(config, log);
  if (config.workers === 1) {
    letYoungSpaceGrow(false);
    await import('../../main.ts');
    // Before anything is said that would be said again.
    beginAnewIfCompiled();
  }
  for (const variable of unknownVariables(process.env)) {
    log.warn({ variable }, `${variable} is not a setting and is ignored; 'wharf serve --help' lists them all`);
  }
  const serving = config.workers > 1 ? await startWorkers(config, log) : await startAlone(config, log);
  stopOnSignals({ stop: serving.stop, log, clock: systemClock, process });
  process.stdout.write(banner(serving.started));
}

interface Serving {
  readonly started: Started;
  stop(): Promise<void>;
}

async function startAlone(config: Config, log: Log, options: StartOptions = {}): Promise<Serving> {
  letYoungSpaceGrow(false);
  collectOldSpaceSooner();
  try {
    const { startServer } = await import('../../main.ts');
    const { url, organization, firstStart, stop } = await startServer(config, { log, ...options });
    return { started: { url, organization, firstStart, data: config.data }, stop };
  } catch (error) {
    log.debug({ error }, 'the start failed');
    throw new Error(whyNotStarted(error, config));
  } finally {
    letYoungSpaceGrowUnderLoad();
  }
}

/** This process only deals out connections; the workers run the same command line as it does. */
async function startWorkers(config: Config, log: Log): Promise<Serving> {
  const dealer = await createDealer(config.listen).catch((error: unknown) => {
    throw new Error(whyNotStarted(error, config));
  });
  const fork = (): Worker<Started> => {
    const worker = forkWorker<Started>(dealer.port);
    void worker.started.then(
      () => dealer.add(worker),
      () => {},
    );
    void worker.ended.then(() => dealer.remove(worker));
    return worker;
  };
  try {
    const { started, stop } = await superviseWorkers({ count: config.workers, fork, log, clock: systemClock });
    const closeAndStop = (): Promise<void> => {
      dealer.close();
      return stop();
    };
    return { started, stop: closeAndStop };
  } catch (error) {
    dealer.close();
    throw error;
  }
}

async function serveAsWorker(config: Config, log: Log): Promise<void> {
  try {
    const { started, stop } = await startAlone(config, log, {
      connections: connectionsFromSupervisor,
      publishMetrics: metricsOfAll,
    });
    stopOnSignals({ stop, log, clock: systemClock, process });
    await reportStart({ started });
  } catch (error) {
    await reportStart({ failed: messageOf(error) });
    process.exit(1);
  }
}

/** A failed start in the words of the person who can mend it. */
export function whyNotStarted(error: unknown, { listen, databaseUrl }: Pick<Config, 'listen' | 'databaseUrl'>): string {
  const { code, syscall, hostname } = rootOf(error) as { code?: string; syscall?: string; hostname?: string };
  if (code === 'EADDRINUSE') {
    return `port ${listen.port} is taken by another program: choose another with WHARF_LISTEN, such as 127.0.0.1:0 for any free one`;
  }
  if (syscall === 'listen' || (hostname !== undefined && hostname === listen.host)) {
    return `cannot listen at ${listen.host}:${listen.port} (${code}): set WHARF_LISTEN to an address of this machine, such as 127.0.0.1:8080`;
  }
  // Nothing else is called up while starting.
  if (databaseUrl && code && /^(?:ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) {
    return `cannot reach the database: ${messageOf(error)}; is WHARF_DATABASE_URL right?`;
  }
  return `cannot start: ${messageOf(error)}`;
}
