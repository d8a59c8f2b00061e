import cluster from 'node:cluster';
import type { Socket } from 'node:net';
import type { PortPurpose } from '../../main.ts';
import type { Port } from '../../transport/port.ts';
import type { Worker } from './supervisor.ts';
import { createMetricsRelay } from './worker-metrics.ts';

/** Whether this process is a worker of a supervisor. */
export const isWorker = cluster.isWorker;

/** The variables that tell a worker the ports of the supervisor. */
const PORT_VARIABLES = { main: 'WHARF_WORKER_PORT', operations: 'WHARF_WORKER_OPERATIONS_PORT' } as const;

/** Sent by the supervisor with the socket of a connection. The worker acknowledges the number of the connection. */
type Handover = { readonly connection: number; readonly purpose: PortPurpose };
type Acknowledgement = { readonly acknowledged: number };
/** Sent by a worker that stops. The supervisor hands over no more connections and responds with `portClosed`. */
type ClosePort = { readonly closePort: PortPurpose };
type PortClosed = { readonly portClosed: PortPurpose };
/** Sent by a worker once. */
type StartResult<T> = { readonly started: T } | { readonly failed: string };

export interface WorkerProcess<T> extends Worker<T> {
  /** Makes the worker read its settings again. */
  reload(): void;
  handOver(socket: Socket, purpose: PortPurpose): void;
}

let connections = 0;

const relayMetrics = createMetricsRelay(() => Object.values(cluster.workers ?? {}).filter((one) => one !== undefined));

/** Starts a worker: a process with the command line and the V8 flags of this one. */
export function forkWorker<T>(
  ports: Readonly<Partial<Record<PortPurpose, number>>>,
  closePort: (purpose: PortPurpose) => void,
): WorkerProcess<T> {
  const worker = cluster.fork({
    [PORT_VARIABLES.main]: ports.main,
    ...(ports.operations !== undefined && { [PORT_VARIABLES.operations]: ports.operations }),
  });
  const started = Promise.withResolvers<T>();
  const ended = Promise.withResolvers<string>();
  const unacknowledged = new Map<number, Socket>();
  const release = (socket: Socket | undefined): void => void socket?.destroy();
  worker.on('message', (message: StartResult<T> | Acknowledgement | ClosePort | object) => {
    if ('acknowledged' in message) {
      release(unacknowledged.get(message.acknowledged));
      unacknowledged.delete(message.acknowledged);
    }
    if ('closePort' in message) {
      closePort(message.closePort);
      // After the connections that were handed over before: messages arrive in their order.
      if (worker.isConnected()) worker.send({ portClosed: message.closePort } satisfies PortClosed);
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
  relayMetrics(worker);
  return {
    pid: worker.process.pid ?? 0,
    started: started.promise,
    ended: ended.promise,
    stop: () => void worker.process.kill('SIGTERM'),
    kill: () => void worker.process.kill('SIGKILL'),
    reload: () => void worker.process.kill('SIGHUP'),
    handOver(socket, purpose) {
      const connection = ++connections;
      unacknowledged.set(connection, socket);
      // Stays open here until the worker acknowledges it. Otherwise a worker that ends now would leave it open forever.
      worker.process.send({ connection, purpose } satisfies Handover, socket, { keepOpen: true }, () => {});
    },
  };
}

/** Reports the start of this worker to the supervisor. Resolves when the message is sent. */
export const reportStart = <T>(result: StartResult<T>): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(result, undefined, undefined, () => resolve());
  });

/** A port of the supervisor, which hands its connections over to this worker. */
export const openSupervisorPort = async (purpose: PortPurpose): Promise<Port> => ({
  port: Number(process.env[PORT_VARIABLES[purpose]]),
  serve(accept) {
    process.on('message', (message: Handover | object, socket?: Socket) => {
      if (!('connection' in message) || message.purpose !== purpose) return;
      process.send?.({ acknowledged: message.connection } satisfies Acknowledgement);
      // A client may close its side of the connection and still wait for the response.
      if (socket) accept(Object.assign(socket, { allowHalfOpen: true }));
    });
  },
  close: () =>
    new Promise((resolve) => {
      process.on('message', (message: PortClosed | object) => {
        if ('portClosed' in message && message.portClosed === purpose) resolve();
      });
      if (process.connected) process.send?.({ closePort: purpose } satisfies ClosePort);
      else resolve();
    }),
});
