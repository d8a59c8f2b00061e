/**
 * Drives a server, in a process of its own as `npm start` runs it, by a client written in Go: `npm run test:interop`, or
 * with `-- PostgreSQL` on that database. It takes every resource through its life in v1, v2beta1 and v2.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mintOwnerToken } from '../../src/identity/owner.ts';
import { databases } from '../support/databases.ts';
import { spawnServer } from '../support/process.ts';

const here = import.meta.dirname;
const say = (line: string) => process.stdout.write(`${line}\n`);

async function judge(): Promise<boolean> {
  const scratch = mkdtempSync(join(tmpdir(), 'wharf-interop-'));
  try {
    const program = join(scratch, 'interop');
    say('building the client…');
    const built = spawnSync('go', ['build', '-o', program, '.'], { cwd: here, stdio: ['ignore', 2, 2] });
    if (built.status !== 0) throw new Error('the client cannot be built');

    const wanted = process.argv[2] ?? 'SQLite';
    const database = databases.find(({ name }) => name === wanted);
    if (!database) throw new Error(`there is no database ${wanted}`);
    const home = await database.home();
    const server = await spawnServer(home);
    try {
      const organization = /"organization":"([0-9a-f]{40})"/.exec(server.log.join('\n'))?.[1] ?? '';
      const env = {
        PATH: process.env.PATH ?? '',
        WHARF_URL: server.url,
        WHARF_TOKEN: await mintOwnerToken(home.dataDir),
        WHARF_ORG: organization,
      };
      return spawnSync(program, [], { env, stdio: 'inherit' }).status === 0;
    } finally {
      await server.stop();
      await home.remove();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (spawnSync('go', ['version']).status !== 0) {
  say('interop: skipped, because Go is not installed');
} else {
  const isGood = await judge().catch((error: Error) => {
    say(`interop: ${error.message}`);
    return false;
  });
  process.exitCode = isGood ? 0 : 1;
}
