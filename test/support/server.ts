import type { Clock } from '../../src/base/clock.ts';
import type { Log } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Server, startServer } from '../../src/main.ts';
import type { Database, Home } from './databases.ts';

export interface TestServer {
  readonly url: string;
  readonly organization: string;
  /** A bearer token of the owner. */
  readonly token: string;
  readonly home: Home;
  /** Stops the server and leaves its data. */
  stop(): Promise<void>;
  /** Stops the server and removes its data. */
  remove(): Promise<void>;
}

export interface TestServerOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly log?: Log;
}

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** A whole server in this process, on a port and in a place of its own. */
export async function startTestServer(database: Database, options: TestServerOptions = {}): Promise<TestServer> {
  return startServerIn(await database.home(), options);
}

/** The same on data that is already there. */
export async function startServerIn(home: Home, options: TestServerOptions = {}): Promise<TestServer> {
  const { env = {}, clock, log = silent } = options;
  const flags = { listen: '127.0.0.1:0', data: home.dataDir, databaseUrl: home.databaseUrl };
  const server: Server = await startServer(loadConfig(flags, env), { log, ...(clock && { clock }) });
  const stop = () => server.stop();
  return {
    url: server.url,
    organization: server.organization.uid,
    token: await mintOwnerToken(home.dataDir, clock ? { clock } : {}),
    home,
    stop,
    async remove() {
      await stop();
      await home.remove();
    },
  };
}
