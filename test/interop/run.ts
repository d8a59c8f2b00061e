/**
 * Drives a server, as `npm start` runs it, by two clients written in Go: `npm run test:interop`, or with `-- PostgreSQL`
 * on that database alone. One takes every resource through its life in v1, v2beta1 and v2, receives events, and sees the
 * server restart; the other is built on the platform's public SDK, which has them too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { type Database, databaseNamed, databases } from '../support/databases.ts';
import { judgeByGo } from '../support/go.ts';
import { npmStart } from './npm-start.ts';

async function drive(name: string, program: string, database: Database): Promise<boolean> {
  const home = await database.home();
  let server = await npmStart(home, '127.0.0.1:0');
  const { url, organization } = server;
  try {
    process.stdout.write(`${name}: on ${database.name}\n`);
    const env = {
      PATH: process.env.PATH,
      WHARF_URL: url,
      WHARF_TOKEN: await mintOwnerToken(home.dataDir),
      WHARF_ORG: organization,
    };
    const client = spawn(program, [], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(client, 'close');
    // If it is gone before it hears an answer, its exit code says so.
    client.stdin.on('error', () => {});
    for await (const line of createInterface({ input: client.stdout })) {
      if (line === 'please stop') await server.stop();
      else if (line === 'please start') server = await npmStart(home, new URL(url).host);
      else process.stdout.write(`${line}\n`);
      if (line.startsWith('please ')) client.stdin.write('done\n');
    }
    const [code] = await ended;
    return code === 0;
  } finally {
    await server.stop();
    await home.remove();
  }
}

const wanted = process.argv[2] === undefined ? databases : [databaseNamed(process.argv[2])];

const clients = [
  { name: 'interop', directory: import.meta.dirname },
  { name: 'interop-sdk', directory: join(import.meta.dirname, 'sdk') },
];

for (const { name, directory } of clients) {
  await judgeByGo(name, { directory, target: '.' }, async (program) => {
    for (const database of wanted) if (!(await drive(name, program, database))) return false;
    return true;
  });
}
