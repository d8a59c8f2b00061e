import cluster from 'node:cluster';
import type { Socket } from 'node:net';
import type { Connections } from '../../main.ts';
import { relayMetrics } from './worker-metrics.ts';
import type { Worker } from './workers.ts';

/** Whether this process is one of several that serve. */
export const isWorker = cluster.isWorker;

/** Where a worker finds the port that its supervisor listens at. */
const PORT = 'WHARF_WORKER_PORT';

/** What supervisor and worker tell each other. A connection comes with its socket, and is acknowledged by its number. */
type Order = { readonly connection: number };
type Receipt = { readonly taken: number };
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
  const handedOver = new Map<number, Socket>();
  const release = (socket: Socket | undefined): void => void socket?.destroy();
  worker.on('message', (report: Report<T> | Receipt | object) => {
    if ('taken' in report) {
      release(handedOver.get(report.taken));
      handedOver.delete(report.taken);
    }
    if ('failed' in report) started.reject(new Error(report.failed));
    if ('started' in report) started.resolve(report.started);
  });
  worker.once('exit', (code: number, signal: string | null) => {
    const how = signal ?? `exit code ${code}`;
    started.reject(new Error(`a worker ended while it started: ${how}`));
    ended.resolve(how);
    // Taken by nobody any more: their clients see that the connection breaks, and come again.
    handedOver.forEach(release);
  });
  relayMetrics(worker, () => Object.values(cluster.workers ?? {}).filter((one) => one !== undefined));
  return {
    pid: worker.process.pid ?? 0,
    started: started.promise,
    ended: ended.promise,
    stop: () => void worker.process.kill('SIGTERM'),
    take(socket) {
      const number = ++connections;
      handedOver.set(number, socket);
      // Kept open here until the worker has it, or a worker that dies would leave a connection that nobody closes.
      worker.process.send({ connection: number } satisfies Order, socket, { keepOpen: true }, () => {});
    },
  };
}

let connections = 0;

/** Tells the supervisor how the start of this worker went, and resolves when that has been said. */
export const reportStart = <T>(report: Report<T>): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(report, undefined, undefined, () => resolve());
  });

/** The connections that the supervisor hands to this worker. */
export const connectionsFromSupervisor: Connections = async (accept) => {
  process.on('message', (message: Order | object, socket?: Socket) => {
    if (!('connection' in message)) return;
    process.send?.({ taken: message.connection } satisfies Receipt);
    // A client may close its side and still wait for the answer.
    if (socket) accept(Object.assign(socket, { allowHalfOpen: true }));
  });
  return Number(process.env[PORT]);
};
