import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import { rootOf, type Uid } from '../../../base/uid.ts';
import type { Store } from '../../../store/store.ts';
import { createGroups, createRepo } from '../repo.testing.ts';
import { resolveRepo } from './resolve-repo.ts';

for (const database of databases) {
  describe(`resolveRepo on ${database.name}`, () => {
    let store: Store;
    let org: Uid;
    let team: Uid;

    before(async () => {
      store = await temporaryStore(database);
      team = await createGroups(store, 'acme', 'team');
      org = rootOf(team);
    });
    after(() => store.close());

    const resolve = (path: string) => resolveRepo(store.reader, path.split('/'));

    test('finds repos at any depth', async () => {
      const [web, app] = [await createRepo(store, org, 'web'), await createRepo(store, team, 'app')];
      assert.deepEqual(await resolve('acme/web'), { group: org, repo: web, missing: 'nothing' });
      assert.deepEqual(await resolve('acme/team/app'), { group: team, repo: app, missing: 'nothing' });
    });

    test('distinguishes a missing repo from a missing group', async () => {
      assert.deepEqual(await resolve('acme/team/none'), { group: team, missing: 'repo' });
      assert.deepEqual(await resolve('acme/none'), { group: org, missing: 'repo' });
      assert.deepEqual(await resolve('acme/none/app'), { group: org, missing: 'group' });
      assert.deepEqual(await resolve('acme/none/none/app'), { group: org, missing: 'group' });
      assert.deepEqual(await resolve('none/team/app'), { missing: 'group' });
    });

    test('a group and a repo can have the same name', async () => {
      const repo = await createRepo(store, org, 'team');
      assert.deepEqual(await resolve('acme/team'), { group: org, repo, missing: 'nothing' });
      assert.equal((await resolve('acme/team/x')).group, team);
    });

    test('malformed paths find nothing', async () => {
      for (const path of ['', 'acme', '/', '//', 'acme/', '/acme/web', 'acme//web', 'acme/../web', `${org}/web`]) {
        assert.equal((await resolve(path)).repo, undefined, path);
      }
      assert.deepEqual(await resolveRepo(store.reader, Array(10_000).fill('acme')), { missing: 'group' });
    });
  });
}
