/** A server with one repo and the usual caller, for the guard in the tests; tells how much processor time it has used. */
import { create } from '@bufbuild/protobuf';
import { systemClock } from '../../src/base/clock.ts';
import { newUid } from '../../src/base/uid.ts';
import { loadConfig } from '../../src/config.ts';
import { GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { startServer } from '../../src/main.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { silent } from '../../test/support/server.ts';

process.on('message', async (message: { readonly start: string } | { readonly cpu: true }) => {
  if ('cpu' in message) process.send?.(usedCpu());
  else process.send?.(await start(message.start));
});

const usedCpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

async function start(dataDir: string) {
  const server = await startServer(loadConfig({ data: dataDir, listen: '127.0.0.1:0' }, {}), { log: silent });
  const repo = await makeRepo(dataDir, server.organization.uid);
  const own = await mintOwnerToken(dataDir);
  const exchange = `${server.url}/sts/exchange?aud=${encodeURIComponent(server.url)}`;
  const answer = await fetch(exchange, { method: 'POST', headers: { authorization: `Bearer ${own}` } });
  const { token } = (await answer.json()) as { token: string };
  return {
    port: Number(new URL(server.url).port),
    path: `/registry/v2/repos/${repo}`,
    headers: { authorization: `Bearer ${token}` },
  };
}

async function makeRepo(dataDir: string, organization: string): Promise<string> {
  const store = await openStore({ dataDir });
  const group = newUid(organization);
  const uid = newUid(group);
  await store.write(async (tx) => {
    const team = { message: create(GroupSchema, { name: 'team' }), uid: group, parent: organization };
    await insert(tx, groups, team, systemClock());
    const message = create(RepoSchema, { name: 'app', description: 'What the guard reads again and again.' });
    await insert(tx, repos, { message, uid, parent: group }, systemClock());
  });
  await store.close();
  return uid;
}
