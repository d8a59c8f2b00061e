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
import { startServerOn, startTestServer, type TestServer } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, getGroup, deleteGroup } = GroupsService.method;
const { createIdentity, listIdentities } = IdentitiesService.method;
const { createRepo, listRepos } = ReposService.method;
const newIdentity = (name: string) => ({ name, relationship: { case: 'claimMatch' as const, value: CLAIM_MATCH } });
const CLAIM_MATCH = {
  iss: { case: 'issuer' as const, value: 'https://issuer.example.com' },
  sub: { case: 'subject' as const, value: 'somebody' },
};

for (const database of databases) {
  const shared = database.name === 'PostgreSQL';
  describe(`concurrent creates on ${shared ? 'two servers with one PostgreSQL' : 'SQLite'}`, () => {
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
      second = shared ? await startServerOn(first.dataLocation, { env }) : first;
      clients = [first, second].flatMap(({ url }) => wires.map((wire) => wire.connect(url, first.token)));
      store = await openStore(first.dataLocation);
    });
    after(async () => {
      for (const each of clients) each.close();
      await assertConsistent(store.reader);
      await store.close();
      if (second !== first) await second.stop();
      await first.remove();
    });

    test('each resource is stored, counted and has one event', async () => {
      const parent = await newGroup('each');
      const made = await Promise.all(
        Array.from({ length: 60 }, (_, at) =>
          client(at).call(createIdentity, { parent, identity: newIdentity(`i${at}`) }),
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

    test('a refused create does not fail the others', async () => {
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

    test('nothing is created in a group that is deleted concurrently', async () => {
      for (let round = 0; round < 5; round++) {
        const parent = await newGroup(`doomed ${round}`);
        const creates = Array.from({ length: 20 }, (_, at) =>
          client(at).call(createIdentity, { parent, identity: newIdentity(`i${at}`) }),
        );
        const deletion = client(round).call(deleteGroup, { uid: parent });
        const [deleted, ...results] = await Promise.allSettled([deletion, ...creates]);
        const made = results.filter(({ status }) => status === 'fulfilled').length;
        if (deleted.status === 'rejected') {
          assert.ok(made > 0, 'the deletion was refused because of the children');
          await client(0).call(getGroup, { uid: parent });
        } else assert.equal(made, 0);
      }
    });
  });
}
