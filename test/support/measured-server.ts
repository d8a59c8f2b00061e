import { fork, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { v8Flags } from '../../src/cli/v8-flags.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import type { Database } from './databases.ts';
import type { StartMessage } from './measured-server.program.ts';
import type { TestServer } from './server.ts';

const PROGRAM = fileURLToPath(new URL('./measured-server.program.ts', import.meta.url));

/** A server in a process of its own that measures how long it holds its event loop. */
export interface MeasuredServer extends TestServer {
  /**
   * Runs `attack` and returns the longest time for which the server held its event loop during it, in milliseconds of
   * processor time.
   */
  longestBlock(attack: () => Promise<unknown>): Promise<number>;
  /**
   * The shortest of the longest blocks of several runs. The first run also loads and compiles code, and garbage of
   * earlier runs may be collected in any of them.
   */
  typicalBlock(attack: () => Promise<unknown>, runs?: number): Promise<number>;
}

export async function startMeasuredServer(
  database: Database,
  env: Readonly<Record<string, string>> = {},
): Promise<MeasuredServer> {
  const dataLocation = await database.createDataLocation();
  const child = fork(PROGRAM, { execArgv: [...v8Flags], serialization: 'advanced' });
  async function request<T>(message: Serializable): Promise<T> {
    const response = once(child, 'message');
    child.send(message);
    return (await response)[0] as T;
  }
  const { dataDir, databaseUrl } = dataLocation;
  const start: StartMessage = { start: { dataDir, databaseUrl }, env };
  const { url, organization } = await request<{ url: string; organization: string }>(start as never);
  const stop = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const measure = () => request<number>({ measure: true });
  async function longestBlock(attack: () => Promise<unknown>): Promise<number> {
    await measure();
    await attack();
    return measure();
  }
  return {
    url,
    localUrl: url,
    organization,
    operationsUrl: undefined,
    token: await mintOwnerToken(dataDir),
    dataLocation,
    longestBlock,
    async typicalBlock(attack, runs = 3) {
      let shortest = Number.POSITIVE_INFINITY;
      for (let run = 0; run < runs; run++) shortest = Math.min(shortest, await longestBlock(attack));
      return shortest;
    },
    stop,
    async remove() {
      await stop();
      await dataLocation.remove();
    },
  };
}
