import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Config } from '../../config.ts';
import type { StartOptions } from '../../main.ts';
import { errorMessage, rootCause } from '../error-message.ts';
import type { StartedServer } from './banner.ts';
import { createConnectionBalancer } from './connection-balancer.ts';
import { stopOnSignals } from './signals.ts';
import { superviseWorkers, type Worker } from './supervisor.ts';
import { metricsOfAllWorkers } from './worker-metrics.ts';
import { forkWorker, openSupervisorPort, reportStart } from './worker-processes.ts';

export interface RunningServer {
  readonly started: StartedServer;
  stop(): Promise<void>;
}

/** Serves in this process. */
export async function startInProcess(config: Config, log: Log, options: StartOptions = {}): Promise<RunningServer> {
  try {
    const { startServer } = await import('../../main.ts');
    const { url, organization, firstStart, stop } = await startServer(config, { log, ...options });
    return { started: { url, organization, firstStart, data: config.data }, stop };
  } catch (error) {
    log.debug({ error }, 'the start failed');
    throw new Error(startFailureMessage(error, config));
  }
}

/** Serves in several worker processes. This process accepts the connections and supervises the workers. */
export async function startWorkers(config: Config, log: Log): Promise<RunningServer> {
  const balancer = await createConnectionBalancer(config.listen).catch((error: unknown) => {
    throw new Error(startFailureMessage(error, config));
  });
  const fork = (): Worker<StartedServer> => {
    const worker = forkWorker<StartedServer>(balancer.port);
    void worker.started.then(
      () => balancer.add(worker),
      () => {},
    );
    void worker.ended.then(() => balancer.remove(worker));
    return worker;
  };
  try {
    const { started, stop } = await superviseWorkers({ count: config.workers, fork, log, clock: systemClock });
    const closeAndStop = (): Promise<void> => {
      balancer.close();
      return stop();
    };
    return { started, stop: closeAndStop };
  } catch (error) {
    balancer.close();
    throw error;
  }
}

/** Serves the connections that the supervisor hands over to this worker. */
export async function runWorker(config: Config, log: Log): Promise<void> {
  try {
    const { started, stop } = await startInProcess(config, log, {
      openPort: openSupervisorPort,
      publishMetrics: metricsOfAllWorkers,
    });
    stopOnSignals({ stop, log, clock: systemClock, process });
    await reportStart({ started });
  } catch (error) {
    await reportStart({ failed: errorMessage(error) });
    process.exit(1);
  }
}

/** Says why a start failed and which setting to change. */
export function startFailureMessage(
  error: unknown,
  { listen, databaseUrl }: Pick<Config, 'listen' | 'databaseUrl'>,
): string {
  const { code, syscall, hostname } = rootCause(error) as { code?: string; syscall?: string; hostname?: string };
  if (code === 'EADDRINUSE') {
    return `port ${listen.port} is used by another program: set WHARF_LISTEN to another port, such as 127.0.0.1:0 for any free one`;
  }
  if (syscall === 'listen' || (hostname !== undefined && hostname === listen.host)) {
    return `cannot listen at ${listen.host}:${listen.port} (${code}): set WHARF_LISTEN to an address of this machine, such as 127.0.0.1:8080`;
  }
  // During a start only the database is connected to.
  if (databaseUrl && code && /^(?:ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) {
    return `cannot reach the database: ${errorMessage(error)}: check WHARF_DATABASE_URL`;
  }
  return `cannot start: ${errorMessage(error)}`;
}
