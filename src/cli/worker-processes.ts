import cluster, { type Worker as Process } from 'node:cluster';
import type { Socket } from 'node:net';
import type { Connections } from '../main.ts';
import { relayMetrics } from './worker-metrics.ts';
import type { Worker } from './workers.ts';

/** Whether this process is one of several that serve. */
export const isWorker = cluster.isWorker;

/** Where a worker finds the port that its supervisor listens at. */
const PORT = 'WHARF_WORKER_PORT';

/** What supervisor and worker tell each other; a connection comes with its socket. */
const CONNECTION = { connection: true } as const;
type Report<T> = { readonly started: T } | { readonly failed: string };

/** A worker that connections can be handed to. */
export interface WorkerProcess<T> extends Worker<T> {
  take(socket: Socket): void;
}

/** Another process that runs this same command line, for the port that the supervisor listens at. */
export function forkWorker<T>(port: number): WorkerProcess<T> {
  const worker = cluster.fork({ [PORT]: port });
  const started = Promise.withResolvers<T>();
  const ended = Promise.withResolvers<string>();
  worker.on('message', (report: Report<T> | object) => {
    if ('failed' in report) started.reject(new Error(report.failed));
    if ('started' in report) started.resolve(report.started);
  });
  worker.once('exit', (code: number, signal: string | null) => {
    const how = signal ?? `exit code ${code}`;
    started.reject(new Error(`a worker ended while it started: ${how}`));
    ended.resolve(how);
  });
  relayMetrics(worker, () => Object.values(cluster.workers ?? {}).filter((one) => one !== undefined));
  return {
    pid: worker.process.pid ?? 0,
    started: started.promise,
    ended: ended.promise,
    stop: () => void worker.process.kill('SIGTERM'),
    take: (socket) => hand(worker, socket),
  };
}

function hand(worker: Process, socket: Socket): void {
  // A worker that just died takes nothing: its client sees a connection that breaks, and comes again.
  worker.process.send(CONNECTION, socket, {}, (error) => error && socket.destroy());
}

/** Tells the supervisor how the start of this worker went, and resolves when that has been said. */
export const reportStart = <T>(report: Report<T>): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(report, undefined, undefined, () => resolve());
  });

/** The connections that the supervisor hands to this worker. */
export const connectionsFromSupervisor: Connections = async (accept) => {
  process.on('message', (message: object, socket?: Socket) => {
    // It left the supervisor unread; a client may close its side and still wait for the answer.
    if ('connection' in message && socket) accept(Object.assign(socket, { allowHalfOpen: true }));
  });
  return Number(process.env[PORT]);
};
