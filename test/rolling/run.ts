/**
 * Restarts two servers on one PostgreSQL in turn, behind HAProxy and under the load of 50 clients. No request may fail.
 *
 * Run it with `npm run test:rolling`.
 */
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { findDatabase } from '../support/databases.ts';
import { isHaproxyInstalled, startHaproxy, untilServerIs } from '../support/haproxy.ts';
import { spawnServer } from '../support/process.ts';
import { type LoadResult, startLoad } from './load.ts';

const ROUNDS = 3;
/** Longer than HAProxy needs to notice that a server stops: see deploy/haproxy/haproxy.cfg. */
const env = { WHARF_DRAIN: '4s' };

const print = (line: string): void => void process.stdout.write(`rolling: ${line}\n`);

async function restartBehindHaproxy(): Promise<boolean> {
  const location = await findDatabase('PostgreSQL').createDataLocation();
  const servers = [await spawnServer(location, env), await spawnServer(location, env)];
  const addresses = servers.map(({ url }) => new URL(url).host);
  const haproxy = await startHaproxy(addresses);
  try {
    const organization = (await readOwner(location.dataDir))?.organization ?? '';
    const token = await mintOwnerToken(location.dataDir);
    for (const at of addresses.keys()) await untilServerIs(haproxy, `wharf${at + 1}`, 'UP');
    const load = await startLoad({ ...haproxy, grpcUrls: [haproxy.url, haproxy.tcpUrl], token, organization });
    for (let round = 1; round <= ROUNDS; round++) {
      for (const [at, address] of addresses.entries()) {
        await servers[at]?.stop();
        servers[at] = await spawnServer(location, { ...env, WHARF_LISTEN: address });
        await untilServerIs(haproxy, `wharf${at + 1}`, 'UP');
        print(`round ${round}: restarted server ${at + 1}; ${load.failures.length} failed requests`);
      }
    }
    const result = await load.stop();
    const stats = await haproxy.stats();
    for (const one of stats) print(JSON.stringify(one));
    return report(result);
  } finally {
    await haproxy.stop();
    for (const server of servers) await server.kill();
    await location.remove();
  }
}

function report({ requests, failures, wrongCounts }: LoadResult): boolean {
  for (const { time, client, request, problem } of failures.slice(0, 20)) {
    print(`FAILED ${time} ${client} ${request}: ${problem}`);
  }
  for (const wrong of wrongCounts) print(`WRONG ${wrong}`);
  print(`${failures.length} failed of ${requests.rest} REST and ${requests.grpc} gRPC requests`);
  return failures.length + wrongCounts.length === 0;
}

if (isHaproxyInstalled()) {
  if (!(await restartBehindHaproxy())) process.exitCode = 1;
} else {
  print('SKIPPED, because HAProxy is not installed: run tools/install-test-tools.sh');
  if (process.env.CI === 'true') process.exitCode = 1;
}
