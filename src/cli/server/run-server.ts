import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Config } from '../../config.ts';
import type { LoadedSettings } from '../../load-settings.ts';
import type { PortPurpose, StartOptions } from '../../main.ts';
import { stopLimitMs, stopTimesOf } from '../../stop-times.ts';
import { errorMessage, rootCause } from '../error-message.ts';
import type { StartedServer } from './banner.ts';
import { collectWhenIdle } from './collect-when-idle.ts';
import { type Backend, type ConnectionBalancer, createConnectionBalancer } from './connection-balancer.ts';
import { runBackupProcess } from './run-backup.ts';
import { superviseWorkers, type Worker } from './supervisor.ts';
import { metricsOfAllWorkers } from './worker-metrics.ts';
import { forkWorker, openSupervisorPort, reportStart, type WorkerProcess } from './worker-processes.ts';

export interface RunningServer {
  readonly started: StartedServer;
  /** Applies the settings that need no restart. */
  reload(config: Config): void;
  stop(): Promise<void>;
}

/** Serves in this process. */
export async function startInProcess(
  settings: LoadedSettings,
  log: Log,
  options: StartOptions = {},
): Promise<RunningServer> {
  const { config } = settings;
  try {
    const { startServer } = await import('../../main.ts');
    const { url, localUrl, organization, firstStart, reload, stop } = await startServer(config, {
      log,
      runBackup: (target, signal) => runBackupProcess(settings, target, signal),
      ...options,
    });
    collectWhenIdle();
    if (config.databaseUrl === undefined) reserveDiskLater(config.data, log);
    return { started: { url, localUrl, organization, firstStart, data: config.data }, reload, stop };
  } catch (error) {
    log.debug({ error }, 'the start failed');
    throw new Error(startFailureMessage(error, config));
  }
}

/** When the reserve of disk space is made, so that it does not slow down the start. */
const RESERVE_AFTER_MS = 60_000;

/** Makes the reserve of disk space that garbage collection needs when the disk is full. */
function reserveDiskLater(data: string, log: Log): void {
  const reserve = async (): Promise<void> => {
    const { createDiskReserve } = await import('../../store/disk-reserve.ts');
    if (!(await createDiskReserve(data)))
      log.warn({ data }, 'the disk is nearly full; there is no space for a reserve');
  };
  setTimeout(() => {
    reserve().catch((error: unknown) => log.warn({ error }, 'cannot reserve disk space'));
  }, RESERVE_AFTER_MS).unref();
}

/** Serves in several worker processes. This process accepts the connections and supervises the workers. */
export async function startWorkers(config: Config, log: Log): Promise<RunningServer> {
  const balancers = await openBalancers(config).catch((error: unknown) => {
    throw new Error(startFailureMessage(error, config));
  });
  const close = (): void => balancers.forEach(({ balancer }) => void balancer.close());
  const running = new Set<WorkerProcess<StartedServer>>();
  let isStopping = false;
  const fork = (): Worker<StartedServer> => {
    const ports = Object.fromEntries(balancers.map(({ purpose, balancer }) => [purpose, balancer.port]));
    const backends = new Map<PortPurpose, () => void>();
    const worker = forkWorker<StartedServer>(ports, (purpose) => backends.get(purpose)?.());
    running.add(worker);
    void worker.ended.then(() => running.delete(worker));
    for (const { purpose, balancer } of balancers) {
      const backend: Backend = { handOver: (socket) => worker.handOver(socket, purpose) };
      // The worker has drained. The others, which stop at the same time, have too.
      backends.set(purpose, () => {
        balancer.remove(backend);
        if (isStopping) void balancer.close();
      });
      void worker.started.then(
        () => balancer.add(backend),
        () => {},
      );
      void worker.ended.then(() => balancer.remove(backend));
    }
    return worker;
  };
  try {
    const { started, stop } = await superviseWorkers({
      ...{ count: config.workers, fork, log, clock: systemClock },
      stopLimitMs: stopLimitMs(stopTimesOf(config)),
    });
    return {
      started,
      reload: () => running.forEach((worker) => void worker.reload()),
      async stop() {
        isStopping = true;
        await stop();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

interface PurposeBalancer {
  readonly purpose: PortPurpose;
  readonly balancer: ConnectionBalancer;
}

async function openBalancers({ listen, operationsListen }: Config): Promise<readonly PurposeBalancer[]> {
  const main = await createConnectionBalancer(listen);
  if (!operationsListen) return [{ purpose: 'main', balancer: main }];
  try {
    const operations = await createConnectionBalancer(operationsListen);
    return [
      { purpose: 'main', balancer: main },
      { purpose: 'operations', balancer: operations },
    ];
  } catch (error) {
    main.close();
    throw error;
  }
}

/** Serves the connections that the supervisor hands over to this worker. */
export async function startWorker(settings: LoadedSettings, log: Log): Promise<RunningServer> {
  try {
    return await startInProcess(settings, log, { openPort: openSupervisorPort, publishMetrics: metricsOfAllWorkers });
  } catch (error) {
    await reportStart({ failed: errorMessage(error) });
    return process.exit(1);
  }
}

/** Says why a start failed and which setting to change. */
export function startFailureMessage(
  error: unknown,
  config: Pick<Config, 'listen' | 'databaseUrl'> & Partial<Pick<Config, 'operationsListen'>>,
): string {
  const cause = rootCause(error) as { code?: string; syscall?: string; hostname?: string; port?: number };
  const { code, syscall, hostname, port } = cause;
  const { operationsListen, databaseUrl } = config;
  const isOperations = operationsListen !== undefined && port === operationsListen.port;
  const [listen, variable] = isOperations
    ? [operationsListen, 'WHARF_OPERATIONS_LISTEN']
    : [config.listen, 'WHARF_LISTEN'];
  if (code === 'EADDRINUSE') {
    return `port ${listen.port} is used by another program: set ${variable} to another port, such as 127.0.0.1:0 for any free one`;
  }
  if (syscall === 'listen' || (hostname !== undefined && hostname === listen.host)) {
    return `cannot listen at ${listen.host}:${listen.port} (${code}): set ${variable} to an address of this machine, such as 127.0.0.1:8080`;
  }
  // During a start only the database is connected to.
  if (databaseUrl && code && /^(?:ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)/.test(code)) {
    return `cannot reach the database: ${errorMessage(error)}: check WHARF_DATABASE_URL`;
  }
  return `cannot start: ${errorMessage(error)}`;
}
