/**
 * Upgrades two servers of the release before this one to this version, one after the other, and back, on one
 * PostgreSQL, behind HAProxy and under the load of 50 clients. No request may fail. Run by run.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startFlags } from '../../src/cli/v8-flags.ts';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { startLoad } from '../rolling/load.ts';
import { assertConsistent } from '../support/consistency.ts';
import { findDatabase } from '../support/databases.ts';
import { startHaproxy, untilServerIs } from '../support/haproxy.ts';
import { spawnServer } from '../support/process.ts';
import { prepareEarlierRelease } from './earlier-release.ts';

const earlier = prepareEarlierRelease();
if ('problem' in earlier) throw new Error(earlier.problem);
const { version, program: earlierProgram } = earlier;

test(`two servers are upgraded from ${version} under load, and back`, { timeout: 170_000 }, async (t) => {
  const location = await findDatabase('PostgreSQL').createDataLocation();
  const start = (program: string | undefined, listen = '127.0.0.1:0') =>
    spawnServer(location, { WHARF_LISTEN: listen }, startFlags, program);
  const servers = [await start(earlierProgram), await start(earlierProgram)];
  const addresses = servers.map(({ url }) => new URL(url).host);
  const haproxy = await startHaproxy(addresses);
  t.after(async () => {
    await haproxy.stop();
    for (const server of servers) await server.kill();
    await location.remove();
  });
  const organization = (await readOwner(location.dataDir))?.organization ?? '';
  const token = await mintOwnerToken(location.dataDir);
  for (const at of addresses.keys()) await untilServerIs(haproxy, `wharf${at + 1}`, 'UP');
  const load = await startLoad({ ...haproxy, grpcUrls: [haproxy.url], token, organization });

  // Forward, and back to the earlier release, and forward again: both versions serve at the same time in between.
  for (const program of [undefined, earlierProgram, undefined]) {
    for (const [at, address] of addresses.entries()) {
      // The earlier release cannot drain, so the load balancer takes the server out before it stops.
      await haproxy.drain(`wharf${at + 1}`);
      assert.equal(await servers[at]?.stop(), 0);
      servers[at] = await start(program, address);
      await haproxy.enable(`wharf${at + 1}`);
      await untilServerIs(haproxy, `wharf${at + 1}`, 'UP');
      const what = `server ${at + 1} runs ${program === undefined ? 'this version' : version}`;
      t.diagnostic(`${what}; ${load.failures.length} failed requests`);
    }
  }
  const { requests, failures, wrongCounts } = await load.stop();
  t.diagnostic(`${failures.length} failed of ${requests.rest} REST and ${requests.grpc} gRPC requests`);
  assert.deepEqual(failures.slice(0, 20), []);
  assert.deepEqual(wrongCounts, []);
  assert.ok(requests.rest > 500 && requests.grpc > 100, 'the clients were busy');
  const store = await openStore(location);
  await assertConsistent(store.reader).finally(() => store.close());
});
