/**
 * Runs API clients against a server that `npm start` runs. Two are written in Go:
 * - one that uses gRPC reflection. It creates, reads, updates and deletes every resource in v1, v2beta1 and v2, receives
 *   events, and keeps calling while the server restarts.
 * - one that uses the public Go SDK of the platform in all three versions.
 *
 * Then calls REST, the registry and gRPC through HAProxy and nginx, with HTTP/1.1 and HTTP/2, with and without TLS.
 * One is written in Python, and one is the published walk-through with curl (scripted-clients.ts).
 *
 * Run it with `npm run test:interop`, or with `npm run test:interop -- PostgreSQL` on PostgreSQL only.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Database, databases, findDatabase } from '../support/databases.ts';
import { testWithGoProgram } from '../support/go-program.ts';
import { npmStart } from './npm-start.ts';
import { testProxies } from './proxies.ts';
import { runScriptedClients } from './scripted-clients.ts';

/** Runs a client program against a new server, and restarts the server when the program requests it. */
async function runClient(name: string, program: string, database: Database): Promise<boolean> {
  const location = await database.createDataLocation();
  let server = await npmStart(location, '127.0.0.1:0');
  const { url, organization } = server;
  try {
    process.stdout.write(`${name}: on ${database.name}\n`);
    const env = {
      PATH: process.env.PATH,
      WHARF_URL: url,
      WHARF_TOKEN: await mintOwnerToken(location.dataDir),
      WHARF_ORG: organization,
    };
    const client = spawn(program, [], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(client, 'close');
    // The write fails if the client has exited. The exit code below reports that.
    client.stdin.on('error', () => {});
    for await (const line of createInterface({ input: client.stdout })) {
      if (line === 'request: stop') await server.stop();
      else if (line === 'request: start') server = await npmStart(location, new URL(url).host);
      else process.stdout.write(`${line}\n`);
      if (line.startsWith('request: ')) client.stdin.write('done\n');
    }
    const [code] = await ended;
    return code === 0;
  } finally {
    await server.stop();
    await location.remove();
  }
}

const selected = process.argv[2] === undefined ? databases : [findDatabase(process.argv[2])];

const clients = [
  { name: 'interop', directory: import.meta.dirname },
  { name: 'interop-sdk', directory: join(import.meta.dirname, 'sdk') },
];

for (const { name, directory } of clients) {
  await testWithGoProgram(name, { directory, target: '.' }, async (program) => {
    for (const database of selected) if (!(await runClient(name, program, database))) return false;
    return true;
  });
}

if (!(await testProxies(selected))) process.exitCode = 1;
await runScriptedClients(selected);
