import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { startServerIn, startTestServer, type TestServer } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, getGroup, deleteGroup } = GroupsService.method;
const { createIdentity, listIdentities } = IdentitiesService.method;
const { createRepo, listRepos } = ReposService.method;
const somebody = (name: string) => ({ name, relationship: { case: 'claimMatch' as const, value: SOMEBODY } });
const SOMEBODY = {
  iss: { case: 'issuer' as const, value: 'https://issuer.example.com' },
  sub: { case: 'subject' as const, value: 'somebody' },
};

for (const database of databases) {
  const shared = database.name === 'PostgreSQL';
  describe(`many creates at once, on ${shared ? 'two servers of one PostgreSQL' : 'SQLite'}`, () => {
    let first: TestServer;
    let second: TestServer;
    let clients: Client[];
    let store: Store;
    const client = (at: number): Client => clients[at % clients.length] ?? assert.fail();
    const newGroup = async (name: string): Promise<string> =>
      (await client(0).call(createGroup, { parent: first.organization, group: { name } })).uid;

    before(async () => {
      const env = { WHARF_MASTER_KEY: '22'.repeat(32) };
      first = await startTestServer(database, { env });
      second = shared ? await startServerIn(first.home, { env }) : first;
      clients = [first, second].flatMap(({ url }) => wires.map((wire) => wire.connect(url, first.token)));
      store = await openStore(first.home);
    });
    after(async () => {
      for (const each of clients) each.close();
      await assertConsistent(store.reader);
      await store.close();
      if (second !== first) await second.stop();
      await first.remove();
    });

    test('each is there, counted and told of once', async () => {
      const parent = await newGroup('each');
      const made = await Promise.all(
        Array.from({ length: 60 }, (_, at) =>
          client(at).call(createIdentity, { parent, identity: somebody(`i${at}`) }),
        ),
      );
      const uids = new Set(made.map(({ uid }) => uid));
      assert.equal(uids.size, 60);
      const { identities, totalCount } = await client(1).call(listIdentities, {
        uidp: { childrenOf: parent },
        pageSize: 100,
      });
      assert.equal(totalCount, 60n);
      assert.deepEqual(new Set(identities.map(({ uid }) => uid)), uids);
      const events = await store.reader.all<{ subject: string }>(
        'SELECT subject FROM outbox WHERE scope = $1 AND subject <> $1',
        parent,
      );
      assert.deepEqual(events.map(({ subject }) => subject).sort(), [...uids].sort());
    });

    test('one that is refused takes no other along', async () => {
      const parent = await newGroup('refused');
      const results = await Promise.allSettled(
        Array.from({ length: 60 }, (_, at) => client(at).call(createRepo, { parent, repo: { name: `r${at % 40}` } })),
      );
      const codes = results.flatMap((result) =>
        result.status === 'rejected' ? [result.reason instanceof CallError ? result.reason.code : result.reason] : [],
      );
      assert.deepEqual(codes, Array(20).fill(Code.ALREADY_EXISTS));
      const { repos, totalCount } = await client(2).call(listRepos, { uidp: { childrenOf: parent }, pageSize: 100 });
      assert.equal(totalCount, 40n);
      assert.equal(new Set(repos.map(({ name }) => name)).size, 40);
    });

    test('nothing is made in a group that is deleted at the same time', async () => {
      for (let round = 0; round < 5; round++) {
        const parent = await newGroup(`doomed ${round}`);
        const creates = Array.from({ length: 20 }, (_, at) =>
          client(at).call(createIdentity, { parent, identity: somebody(`i${at}`) }),
        );
        const deletion = client(round).call(deleteGroup, { uid: parent });
        const [deleted, ...results] = await Promise.allSettled([deletion, ...creates]);
        const made = results.filter(({ status }) => status === 'fulfilled').length;
        if (deleted.status === 'rejected') {
          assert.ok(made > 0, 'it was refused for its children');
          await client(0).call(getGroup, { uid: parent });
        } else assert.equal(made, 0);
      }
    });
  });
}
