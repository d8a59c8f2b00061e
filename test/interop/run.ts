/**
 * Drives a server, in a process of its own as `npm start` runs it, by a client written in Go: `npm run test:interop`, or
 * with `-- PostgreSQL` on that database. It takes every resource through its life in v1, v2beta1 and v2.
 */
import { spawnSync } from 'node:child_process';
import { mintOwnerToken } from '../../src/identity/owner.ts';
import { databaseNamed } from '../support/databases.ts';
import { judgeByGo } from '../support/go.ts';
import { spawnServer } from '../support/process.ts';

await judgeByGo('interop', { directory: import.meta.dirname, target: '.' }, async (program) => {
  const home = await databaseNamed(process.argv[2]).home();
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
});
