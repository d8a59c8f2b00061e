/**
 * A server in a process of its own that measures how long it holds its event loop, for measured-server.ts. The reply
 * to `{ start }` is the URL. The reply to `{ measure: true }` is the longest time since the previous reply.
 */
import { loadConfig } from '../../src/config.ts';
import { startServer } from '../../src/main.ts';
import { silentLog } from './server.ts';

export interface StartMessage {
  readonly start: { readonly dataDir: string; readonly databaseUrl: string | undefined };
  readonly env: Readonly<Record<string, string>>;
}

/** The processor time of the thread of the event loop: not of the thread pool, of workers or of other processes. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let longestMs = 0;
let last = cpuMs();

/**
 * Timers run once per turn of the event loop. So the processor time between two runs of this timer is that of one turn,
 * or of a few turns that took less than a millisecond together.
 */
setInterval(() => {
  const now = cpuMs();
  longestMs = Math.max(longestMs, now - last);
  last = now;
}, 1);

process.on('message', async (message: StartMessage | { readonly measure: true }) => {
  if ('measure' in message) {
    process.send?.(longestMs);
    longestMs = 0;
    return;
  }
  const { start, env } = message;
  const flags = { listen: '127.0.0.1:0', data: start.dataDir, databaseUrl: start.databaseUrl };
  const server = await startServer(loadConfig(flags, env), { log: silentLog });
  process.send?.({ url: server.url, organization: server.organization.uid });
});
