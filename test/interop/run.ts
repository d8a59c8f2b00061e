/**
 * Drives a server, as `npm start` runs it, by a client written in Go: `npm run test:interop`, or with `-- PostgreSQL` on
 * that database alone. It takes every resource through its life in v1, v2beta1 and v2, receives events, and sees the
 * server restart.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { mintOwnerToken } from '../../src/identity/owner.ts';
import { type Database, databaseNamed, databases } from '../support/databases.ts';
import { judgeByGo } from '../support/go.ts';
import { npmStart } from './npm-start.ts';

async function drive(program: string, database: Database): Promise<boolean> {
  const home = await database.home();
  let server = await npmStart(home, '127.0.0.1:0');
  const { url, organization } = server;
  try {
    process.stdout.write(`interop: on ${database.name}\n`);
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

await judgeByGo('interop', { directory: import.meta.dirname, target: '.' }, async (program) => {
  const wanted = process.argv[2] === undefined ? databases : [databaseNamed(process.argv[2])];
  for (const database of wanted) if (!(await drive(program, database))) return false;
  return true;
});
