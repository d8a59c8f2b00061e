import cluster from 'node:cluster';
import type { Socket } from 'node:net';
import type { Port } from '../../transport/port.ts';
import type { Backend } from './connection-balancer.ts';
import type { Worker } from './supervisor.ts';
import { relayMetrics } from './worker-metrics.ts';

/** Whether this process is a worker of a supervisor. */
export const isWorker = cluster.isWorker;

/** The variable that tells a worker the port of the supervisor. */
const PORT_VARIABLE = 'WHARF_WORKER_PORT';

/** Sent by the supervisor with the socket of a connection. The worker acknowledges the number of the connection. */
type Handover = { readonly connection: number };
type Acknowledgement = { readonly acknowledged: number };
/** Sent by a worker once. */
type StartResult<T> = { readonly started: T } | { readonly failed: string };

export interface WorkerProcess<T> extends Worker<T>, Backend {}

let connections = 0;

/** Starts a worker: a process with the command line and the V8 flags of this one. */
export function forkWorker<T>(port: number): WorkerProcess<T> {
  const worker = cluster.fork({ [PORT_VARIABLE]: port });
  const started = Promise.withResolvers<T>();
  const ended = Promise.withResolvers<string>();
  const unacknowledged = new Map<number, Socket>();
  const release = (socket: Socket | undefined): void => void socket?.destroy();
  worker.on('message', (message: StartResult<T> | Acknowledgement | object) => {
    if ('acknowledged' in message) {
      release(unacknowledged.get(message.acknowledged));
      unacknowledged.delete(message.acknowledged);
    }
    if ('failed' in message) started.reject(new Error(message.failed));
    if ('started' in message) started.resolve(message.started);
  });
  worker.once('exit', (code: number, signal: string | null) => {
    const reason = signal ?? `exit code ${code}`;
    started.reject(new Error(`a worker ended while it started: ${reason}`));
    ended.resolve(reason);
    // Closes the connections that the worker did not acknowledge. Their clients see the close and can reconnect.
    unacknowledged.forEach(release);
  });
  relayMetrics(worker, () => Object.values(cluster.workers ?? {}).filter((one) => one !== undefined));
  return {
    pid: worker.process.pid ?? 0,
    started: started.promise,
    ended: ended.promise,
    stop: () => void worker.process.kill('SIGTERM'),
    handOver(socket) {
      const connection = ++connections;
      unacknowledged.set(connection, socket);
      // Stays open here until the worker acknowledges it. Otherwise a worker that ends now would leave it open forever.
      worker.process.send({ connection } satisfies Handover, socket, { keepOpen: true }, () => {});
    },
  };
}

/** Reports the start of this worker to the supervisor. Resolves when the message is sent. */
export const reportStart = <T>(result: StartResult<T>): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(result, undefined, undefined, () => resolve());
  });

/** The port of the supervisor, which hands its connections over to this worker. */
export const openSupervisorPort = async (): Promise<Port> => ({
  port: Number(process.env[PORT_VARIABLE]),
  serve(accept) {
    process.on('message', (message: Handover | object, socket?: Socket) => {
      if (!('connection' in message)) return;
      process.send?.({ acknowledged: message.connection } satisfies Acknowledgement);
      // A client may close its side of the connection and still wait for the response.
      if (socket) accept(Object.assign(socket, { allowHalfOpen: true }));
    });
  },
  close() {},
});
