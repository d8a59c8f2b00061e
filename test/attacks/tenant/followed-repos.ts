import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { ReposService } from '../../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Registry } from '../../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';

const { createRepo, getRepo, listRepos, updateRepo, deleteRepo } = ReposService.method;

const labels = { bundles: ['commercial'], aliases: ['secret:alias'], activeTags: ['secret-tag'], catalogTier: 2 };

onEveryDatabaseAndWire('a repo that follows another', (fixture) => {
  test('shows nothing of the other repo to callers without access to it', async () => {
    const [hidden, mine] = [await fixture.newGroup(), await fixture.newGroup()];
    const { api } = fixture;
    const { uid: source } = await api.call(createRepo, { parent: hidden, repo: { name: 'source', ...labels } });
    // Created by a caller with access to both groups.
    const follower = await api.call(createRepo, {
      parent: mine,
      repo: { name: 'follower', syncConfig: { source } },
    });
    assert.deepEqual(follower.activeTags, labels.activeTags);
    const { uid } = follower;
    await api.call(updateRepo, { repo: { uid, description: 'follows' } });

    const reader = fixture.as(await (await callerWithRole(fixture.server, 'owner', mine)).token());
    const shown = async (): Promise<string> => {
      const told = [
        await reader.call(getRepo, { uid }),
        await reader.call(listRepos, { uidp: { childrenOf: mine } }),
        await reader.call(Registry.method.listRepos, { uidp: { childrenOf: mine } }),
        await reader.call(updateRepo, { repo: { uid, description: 'asked' } }),
      ];
      return JSON.stringify(told, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    };
    assert.doesNotMatch(await shown(), /secret|commercial|"catalogTier":2/);

    // A guess is refused, whether it is right or wrong.
    const guess = (activeTags: string[]) => reader.call(updateRepo, { repo: { uid, activeTags } });
    const right = await rejects(guess(labels.activeTags), Code.INVALID_ARGUMENT);
    const wrong = await rejects(guess(['wrong']), Code.INVALID_ARGUMENT);
    assert.equal(right.message, wrong.message);

    // Events go to all subscriptions of the group.
    const events = await fixture.db.all<{ body: string }>('SELECT body FROM outbox WHERE subject = $1', uid);
    assert.ok(events.length >= 3);
    assert.doesNotMatch(JSON.stringify(events), /secret|commercial/);

    // A caller with access sees the current values.
    assert.deepEqual((await api.call(getRepo, { uid })).activeTags, labels.activeTags);
    // Ending the synchronization, or deleting the source, reveals nothing either.
    const updateMask = { paths: ['sync_config'] };
    const freed = await reader.call(updateRepo, { repo: { uid }, updateMask });
    assert.equal(freed.syncConfig, undefined);
    assert.doesNotMatch(await shown(), /secret|commercial/);
    const { uid: second } = await api.call(createRepo, {
      parent: mine,
      repo: { name: 'second', syncConfig: { source } },
    });
    await api.call(deleteRepo, { uid: source });
    assert.deepEqual((await reader.call(getRepo, { uid: second })).activeTags, []);
    assert.doesNotMatch(await shown(), /secret|commercial/);
  });

  test('keeps the values of the other repo when a caller with access ends the synchronization', async () => {
    const parent = await fixture.newGroup();
    const { api } = fixture;
    const { uid: source } = await api.call(createRepo, { parent, repo: { name: 'source', ...labels } });
    const { uid } = await api.call(createRepo, { parent, repo: { name: 'follower', syncConfig: { source } } });
    const freed = await api.call(updateRepo, {
      repo: { uid, bundles: ['ai'] },
      updateMask: { paths: ['sync_config', 'bundles'] },
    });
    assert.deepEqual([freed.bundles, freed.activeTags], [['ai'], labels.activeTags]);
  });
});
