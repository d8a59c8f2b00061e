import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { newUid } from '../../src/base/uid.ts';
import {
  type Repo,
  RepoSchema,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { findDatabase } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { startServerOn } from '../support/server.ts';
import { wires } from '../support/wires.ts';
import {
  assertIndexConsistent,
  assertListsRight,
  createFormerData,
  openChangedStore,
  readBuildState,
  spawnChangedBuild,
} from './scenario.ts';

const { createRepo, updateRepo, deleteRepo, listRepos } = ReposService.method;

test('two builds with different declarations share a PostgreSQL, and lists are right on both', {
  timeout: 240_000,
}, async (t) => {
  const data = await createFormerData(findDatabase('PostgreSQL'), 300);
  t.after(() => data.location.remove());
  // This process has the declarations of the product.
  const former = await startServerOn(data.location);
  const changed = await spawnChangedBuild(data.location);
  t.after(() => changed.kill());
  const [wire] = wires;
  assert.ok(wire);
  const token = await mintOwnerToken(data.location.dataDir);
  const [formerApi, changedApi] = [wire.connect(former.url, token), wire.connect(changed.url, token)];
  const [parent] = data.busy;
  assert.ok(parent);
  const uidp = { childrenOf: parent };

  // While the former build is connected, nothing is built, and lists in the new order are read row by row.
  const first: Repo = await formerApi.call(createRepo, { parent, repo: { name: 'by-former', description: '! 1' } });
  const listed = await changedApi.call(listRepos, { uidp, orderBy: 'description', pageSize: 1 });
  assert.equal((listed.repos as Repo[])[0]?.uid, first.uid, 'the changed build lists what the former one created');
  const second: Repo = await changedApi.call(createRepo, { parent, repo: { name: 'by-changed', description: '! 2' } });
  const named = await formerApi.call(listRepos, { uidp, orderBy: 'create_time desc', pageSize: 1 });
  assert.equal((named.repos as Repo[])[0]?.uid, second.uid, 'the former build lists what the changed one created');
  await formerApi.call(updateRepo, { repo: { uid: second.uid, description: '! 0' } });
  const updated = await changedApi.call(listRepos, { uidp, orderBy: 'description', pageSize: 2 });
  assert.deepEqual(
    (updated.repos as Repo[]).map(({ uid }) => uid),
    [second.uid, first.uid],
  );
  await changedApi.call(deleteRepo, { uid: first.uid });
  const reading = await openChangedStore(data.location);
  t.after(() => reading.close());
  assert.equal((await readBuildState(reading.reader)).isComplete, false);
  await assertListsRight(changedApi, data);

  formerApi.close();
  await former.stop();
  await pollUntil(
    () => readBuildState(reading.reader),
    ({ isComplete }) => isComplete,
  );
  await assertListsRight(changedApi, data);
  await assertIndexConsistent(reading.reader);

  // A server of the former build starts once more and writes. Its changes are recorded, and the index is repaired.
  const late = await openStore(data.location);
  const uid = newUid(parent);
  const message = create(RepoSchema, { name: 'late', description: '! late' });
  await late.write((tx) =>
    insert({ ...tx, listingIndexes: undefined } as never, repos, { message, uid, parent }, Date.now()),
  );
  await late.close();
  await pollUntil(
    async () => {
      const page = await changedApi.call(listRepos, { uidp, orderBy: 'description desc', name: 'late' });
      return (page.repos as Repo[]).map((repo) => repo.uid);
    },
    (uids) => uids.includes(uid),
  );
  changedApi.close();
  assert.equal(await changed.stop(), 0);
  await assertIndexConsistent(reading.reader);
});
