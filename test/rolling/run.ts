/**
 * - Restarts two servers on one PostgreSQL in turn, behind HAProxy and under the load of 50 clients. No request may fail.
 * - Stops a server under the same load. No request that has reached it may fail.
 *
 * Run it with `npm run test:rolling`.
 */
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { type Database, databases, findDatabase } from '../support/databases.ts';
import { isHaproxyInstalled, startHaproxy, untilServerIs } from '../support/haproxy.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { type LoadResult, startLoad } from './load.ts';

const ROUNDS = 3;
const REQUESTS_BEFORE_STOP = 500;
/** Longer than HAProxy needs on a busy machine to notice that a server stops: see deploy/haproxy/haproxy.cfg. */
const env = { WHARF_DRAIN: '8s' };

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
    // HAProxy would hide failures by trying again.
    const troubled = stats.filter((one) => one.retries + one.connectionErrors + one.responseErrors > 0);
    for (const one of troubled) print(`RETRIED ${JSON.stringify(one)}`);
    const isRight = report(result) && troubled.length === 0;
    if (!isRight) haproxy.output.forEach(print);
    return isRight;
  } finally {
    await haproxy.stop();
    for (const server of servers) await server.kill();
    await location.remove();
  }
}

/**
 * Stops a server under load. No other server takes over, so clients cannot connect in the end. But every request that
 * has reached the server must be answered, and no connection may be closed without a `Connection: close` before it.
 */
async function stopUnderLoad(database: Database): Promise<boolean> {
  const location = await database.createDataLocation();
  // With this level the log has the id of each request that is answered.
  const first = await spawnServer(location, { WHARF_DRAIN: '3s', WHARF_LOG_LEVEL: 'debug' });
  const { url } = first;
  let second: ServerProcess | undefined;
  try {
    const organization = (await readOwner(location.dataDir))?.organization ?? '';
    const token = await mintOwnerToken(location.dataDir);
    const load = await startLoad({ url, grpcUrls: [url], token, organization });
    await pollUntil(
      async () => load.counts.rest + load.counts.grpc,
      (requests) => requests >= REQUESTS_BEFORE_STOP,
    );
    await first.stop();
    second = await spawnServer(location, { WHARF_LISTEN: new URL(url).host });
    const result = await load.stop();
    const log = first.log.join('\n');
    for (const requestId of result.answered) {
      if (!log.includes(requestId)) throw new Error(`the log does not have the answered request ${requestId}`);
    }
    const cut = result.failures.filter((failure) => failure.isOnOpenConnection || log.includes(failure.requestId));
    print(`${database.name}: ${result.failures.length - cut.length} requests did not reach the stopped server`);
    return report({ ...result, failures: cut });
  } finally {
    await first.kill();
    await second?.kill();
    await location.remove();
  }
}

function report({ requests, failures, wrongCounts }: LoadResult): boolean {
  for (const { time, client, request, problem } of failures.slice(0, 20)) {
    print(`FAILED ${time} ${client} ${request}: ${problem.replaceAll('\n', ' ')}`);
  }
  for (const wrong of wrongCounts) print(`WRONG ${wrong}`);
  print(`${failures.length} failed of ${requests.rest} REST and ${requests.grpc} gRPC requests`);
  return failures.length + wrongCounts.length === 0;
}

for (const database of databases) if (!(await stopUnderLoad(database))) process.exitCode = 1;
if (isHaproxyInstalled()) {
  if (!(await restartBehindHaproxy())) process.exitCode = 1;
} else {
  print('SKIPPED, because HAProxy is not installed: run tools/install-test-tools.sh');
  if (process.env.CI === 'true') process.exitCode = 1;
}
