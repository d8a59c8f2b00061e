import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { pollUntil } from './poll-until.ts';

const START_ATTEMPTS = 5;

/** A reverse proxy with one port for plaintext and one for TLS. */
export interface ReverseProxy {
  readonly url: string;
  readonly tlsUrl: string;
  stop(): Promise<void>;
}

export interface ProxyOptions {
  /** The address of the server, such as `127.0.0.1:8080`. */
  readonly server: string;
  readonly isServerTls: boolean;
  /** The files of the certificate and the key that clients see. */
  readonly cert: string;
  readonly key: string;
}

interface ProxyProcess {
  readonly child: ChildProcess;
  remove(): void;
}

/** Starts a proxy program on two free ports, and waits until it accepts connections. */
export async function startProxy(start: (ports: readonly number[]) => Promise<ProxyProcess>): Promise<ReverseProxy> {
  for (let attempt = 1; ; attempt++) {
    const ports = await freePorts(2);
    const { child, remove } = await start(ports);
    const output: string[] = [];
    if (child.stderr) createInterface({ input: child.stderr }).on('line', (line) => output.push(line));
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    const accepts = await pollUntil(async () => hasEnded() || (await canConnect(ports[1] ?? 0)), Boolean).then(
      () => !hasEnded(),
    );
    const stop = async () => {
      if (!hasEnded()) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      remove();
    };
    if (accepts) return { url: `http://127.0.0.1:${ports[0]}`, tlsUrl: `https://127.0.0.1:${ports[1]}`, stop };
    await stop();
    // Another process may have taken a port in the meantime.
    if (attempt === START_ATTEMPTS) throw new Error(`the proxy does not start:\n${output.join('\n')}`);
  }
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Ports that are free now. */
async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = listeners.map((server) => (server.address() as { port: number }).port);
  await Promise.all(listeners.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
