import type { Clock } from '../../src/base/clock.ts';
import type { Log } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Server, type StartOptions, startServer } from '../../src/main.ts';
import type { Database, DataLocation } from './databases.ts';

export interface TestServer {
  readonly url: string;
  /** The URL on this machine, if `url` is that of a proxy. */
  readonly localUrl: string;
  readonly operationsUrl: string | undefined;
  /** The uid of the organization that the first start created. */
  readonly organization: string;
  /** A bearer token of the owner. */
  readonly token: string;
  readonly dataLocation: DataLocation;
  /** Stops the server and keeps its data. */
  stop(): Promise<void>;
  /** Stops the server and removes its data. */
  remove(): Promise<void>;
}

export interface TestServerOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly limits?: StartOptions['limits'];
  readonly pause?: StartOptions['pause'];
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Starts a server in this process on a free port, with new data. */
export async function startTestServer(database: Database, options: TestServerOptions = {}): Promise<TestServer> {
  return startServerOn(await database.createDataLocation(), options);
}

/** Starts a server in this process on a free port, on existing data. */
export async function startServerOn(dataLocation: DataLocation, options: TestServerOptions = {}): Promise<TestServer> {
  const { env = {}, clock, log = silentLog, limits, pause } = options;
  const flags = {
    listen: env.WHARF_LISTEN ?? '127.0.0.1:0',
    data: dataLocation.dataDir,
    databaseUrl: dataLocation.databaseUrl,
  };
  const server: Server = await startServer(loadConfig(flags, env), {
    log,
    ...(clock && { clock }),
    ...(limits && { limits }),
    ...(pause && { pause }),
  });
  const stop = () => server.stop();
  return {
    url: server.url,
    localUrl: server.localUrl,
    operationsUrl: server.operationsUrl,
    organization: server.organization.uid,
    token: await mintOwnerToken(dataLocation.dataDir, clock ? { clock } : {}),
    dataLocation,
    stop,
    async remove() {
      await stop();
      await dataLocation.remove();
    },
  };
}
