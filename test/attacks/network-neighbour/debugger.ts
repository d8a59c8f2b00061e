import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import { startFlags } from '../../../src/cli/v8-flags.ts';
import { findDatabase } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../../support/process.ts';

const REQUESTS = 50;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** The server itself, or its workers if it has some. */
function servingProcesses({ process: { pid }, log }: ServerProcess): number[] {
  const workers = log.filter((line) => line.includes('"worker serves"')).map((line) => JSON.parse(line).pid as number);
  return workers.length > 0 ? [...workers, pid ?? 0] : [pid ?? 0];
}

// Any user of the machine can connect to the debugger of Node, and can then run code in the server.
for (const { name, flags, workers } of [
  { name: 'the flags of npm start', flags: startFlags, workers: 1 },
  { name: 'no flags', flags: [], workers: 1 },
  { name: 'workers', flags: startFlags, workers: 2 },
]) {
  test(`SIGUSR1 opens no debugger and does not stop a server with ${name}`, async (t) => {
    const location = await findDatabase('SQLite').createDataLocation();
    const debugPort = await freePort();
    const env = { WHARF_WORKERS: String(workers), NODE_OPTIONS: `--inspect-port=127.0.0.1:${debugPort}` };
    const server = await spawnServer(location, env, flags);
    t.after(async () => {
      await server.kill();
      await location.remove();
    });
    const pids = await pollUntil(
      async () => servingProcesses(server),
      (found) => found.length >= (workers > 1 ? workers + 1 : 1),
    );
    for (const pid of pids) process.kill(pid, 'SIGUSR1');
    // Node opens the debugger between two turns of the event loop, so it would be open after these requests.
    for (let count = 0; count < REQUESTS; count++) {
      assert.equal((await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } })).status, 200);
    }
    assert.deepEqual(
      server.log.filter((line) => line.includes('Debugger')),
      [],
    );
    const socket = connect(debugPort, '127.0.0.1');
    await assert.rejects(once(socket, 'connect'), { code: 'ECONNREFUSED' });
    for (const pid of pids) assert.ok(process.kill(pid, 0), 'the process still runs');
  });
}

test('a server whose debugger is open says so', async (t) => {
  const location = await findDatabase('SQLite').createDataLocation();
  const server = await spawnServer(location, {}, [...startFlags, '--inspect=127.0.0.1:0']);
  t.after(async () => {
    await server.kill();
    await location.remove();
  });
  const warning = server.log.find((line) => line.includes('the debugger of Node is open')) ?? assert.fail();
  assert.equal(JSON.parse(warning).level, 'warn');
});
