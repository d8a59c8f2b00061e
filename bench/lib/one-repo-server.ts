/**
 * A server with one repo, for the test of the cost of a request. The reply to `{ start: dataDir }` is what a client
 * needs to get the repo. The reply to `{ cpu: true }` is the processor time so far.
 */
import { create } from '@bufbuild/protobuf';
import { systemClock } from '../../src/base/clock.ts';
import { newUid, parseUid, type Uid } from '../../src/base/uid.ts';
import { loadConfig } from '../../src/config.ts';
import { GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { startServer } from '../../src/main.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { silentLog } from '../../test/support/server.ts';
import { cpuMicroseconds } from './cpu.ts';

process.on('message', async (message: { readonly start: string } | { readonly cpu: true }) => {
  if ('cpu' in message) process.send?.(cpuMicroseconds());
  else process.send?.(await start(message.start));
});

async function start(dataDir: string) {
  const server = await startServer(loadConfig({ data: dataDir, listen: '127.0.0.1:0' }, {}), { log: silentLog });
  const repo = await createRepo(dataDir, parseUid('organization', server.organization.uid));
  const ownerToken = await mintOwnerToken(dataDir);
  const exchange = `${server.url}/sts/exchange?aud=${encodeURIComponent(server.url)}`;
  const response = await fetch(exchange, { method: 'POST', headers: { authorization: `Bearer ${ownerToken}` } });
  const { token } = (await response.json()) as { token: string };
  return {
    port: Number(new URL(server.url).port),
    path: `/registry/v2/repos/${repo}`,
    headers: { authorization: `Bearer ${token}` },
  };
}

async function createRepo(dataDir: string, organization: Uid): Promise<Uid> {
  const store = await openStore({ dataDir });
  const group = newUid(organization);
  const uid = newUid(group);
  await store.write(async (tx) => {
    const team = { message: create(GroupSchema, { name: 'team' }), uid: group, parent: organization };
    await insert(tx, groups, team, systemClock());
    const message = create(RepoSchema, { name: 'app', description: 'The repo that the test reads.' });
    await insert(tx, repos, { message, uid, parent: group }, systemClock());
  });
  await store.close();
  return uid;
}
