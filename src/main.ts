import { setTimeout as sleep } from 'node:timers/promises';
import { requireOutside } from './backup/require-outside.ts';
import { type Clock, systemClock } from './base/clock.ts';
import { createLogger, type Log } from './base/log.ts';
import { createMetrics, type Metrics } from './base/metrics.ts';
import { protectDataDirectory } from './base/private-files.ts';
import { type Tracing, withTraceIds } from './base/tracing.ts';
import { compose, type Server } from './compose.ts';
import type { Config } from './config.ts';
import type { Address } from './config-values.ts';
import { resources } from './domains/domains.ts';
import { requireDatabaseFile } from './identity/data-directory.ts';
import { declarationsId } from './resource/index/register-declarations.ts';
import { adviceFor, isUnavailable } from './store/errors.ts';
import { createFailureLog } from './store/failure-log.ts';
import { instrumentStore } from './store/instrumented.ts';
import { databaseFile, openStore } from './store/open.ts';
import { traceStore } from './store/traced.ts';
import { defaultLimits, type Limits } from './transport/limits.ts';
import { openPort, type Port } from './transport/port.ts';

export type { Server } from './compose.ts';

export interface StartOptions {
  readonly log?: Log;
  readonly clock?: Clock;
  /** Opens a port, unless this process listens itself. */
  readonly openPort?: (purpose: PortPurpose) => Promise<Port>;
  /** Overrides limits for unauthenticated clients. */
  readonly limits?: Partial<Limits>;
  /** What `/metrics` shows, if this process is one of several. */
  readonly publishMetrics?: (own: Metrics) => Pick<Metrics, 'contentType' | 'text'>;
  /** Creates a scheduled backup at this place. Without it there are none. */
  readonly runBackup?: (target: string, signal: AbortSignal) => Promise<void>;
  /** Waits for the time of the drain. */
  readonly pause?: (ms: number) => Promise<unknown>;
}

export type PortPurpose = 'main' | 'operations';

/** Composes and starts a server. */
export async function startServer(config: Config, options: StartOptions = {}): Promise<Server> {
  if (config.backupTo !== undefined) requireOutside(config.backupTo, config.data);
  const { log: plainLog = createLogger({ level: config.logLevel }), clock = systemClock, publishMetrics } = options;
  const { pause = sleep } = options;
  const own = createMetrics();
  const metrics = { ...own, ...publishMetrics?.(own) };
  const tracing = await startTracing(config, plainLog, metrics);
  const log = tracing ? withTraceIds(plainLog) : plainLog;
  const onError = (error: Error): void => log.warn({ error }, 'cannot accept a connection');
  const open = (purpose: PortPurpose, address: Address): Promise<Port> =>
    options.openPort?.(purpose) ?? openPort(address, { onError });
  const limits = { ...limitsOf(config), ...options.limits };
  const ports: Port[] = [];
  try {
    const port = await open('main', config.listen);
    ports.push(port);
    const operationsPort = config.operationsListen && (await open('operations', config.operationsListen));
    if (operationsPort) ports.push(operationsPort);
    for (const change of protectDataDirectory(config.data)) log.warn({}, change);
    if (config.databaseUrl === undefined) requireDatabaseFile(config.data);
    const declarations = declarationsId(resources);
    const store = await openStore({ dataDir: config.data, databaseUrl: config.databaseUrl, log, declarations });
    const database = config.databaseUrl === undefined ? databaseFile(config.data) : 'PostgreSQL';
    try {
      const { runBackup } = options;
      const base = { config, log, clock, metrics, tracing, limits, port, operationsPort, runBackup, pause };
      const observed = instrumentStore(store, metrics, createFailureLog(log, clock, database));
      return await compose(
        base,
        tracing ? traceStore(observed, config.databaseUrl ? 'postgresql' : 'sqlite') : observed,
      );
    } catch (error) {
      await store.close();
      throw withAdvice(error, database);
    }
  } catch (error) {
    for (const port of ports) await port.close();
    await tracing?.stop();
    throw error;
  }
}

/** Adds the name of the database and what to do to an error of the database that does not go away by itself. */
function withAdvice(error: unknown, database: string): unknown {
  const advice = isUnavailable(error) ? adviceFor(error) : undefined;
  if (advice === undefined) return error;
  return new Error(`cannot use the database ${database}: ${(error as Error).message}: ${advice}`, { cause: error });
}

/** Loads the packages for traces only if traces are exported. */
async function startTracing({ tracing }: Config, log: Log, metrics: Metrics): Promise<Tracing | undefined> {
  if (!tracing) return undefined;
  const { createOtlpTracing } = await import('./tracing/otlp.ts');
  log.info({ collector: new URL(tracing.url).origin, ...tracing.sampler }, 'exports traces');
  return createOtlpTracing(tracing, { log, metrics });
}

/** Connections are distributed evenly to the workers, so each has its part of the limits. */
function limitsOf({ maxConnections, maxConnectionsPerAddress, unauthenticatedMemory, workers }: Config): Limits {
  return {
    ...defaultLimits,
    connections: Math.ceil(maxConnections / workers),
    connectionsPerAddress: Math.ceil(maxConnectionsPerAddress / workers),
    unauthenticatedBytes: Math.ceil(unauthenticatedMemory / workers),
  };
}
