import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { Subscriptions } from '../../src/contract/gen/platform/events/v1/subscriptions.platform_pb.js';
import { everywhere } from '../support/every-database-and-wire.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const v1 = Subscriptions.method;
const { getSubscription } = SubscriptionsService.method;

everywhere('v1 subscriptions', (bench) => {
  const sink = 'https://sink.invalid/hook';

  test('they are those of v2', async () => {
    const group = await bench.newGroup();
    const { id } = await bench.api.call(v1.create, { parentId: group, subscription: { sink } });
    assert.equal((await bench.api.call(getSubscription, { uid: id })).sink, sink);
    for (const filter of [{ id }, { uidp: { childrenOf: group } }, { uidp: { descendantsOf: group } }]) {
      const { items } = await bench.api.call(v1.list, filter);
      assert.deepEqual(
        items.map((item) => [item.id, item.sink]),
        [[id, sink]],
      );
    }
    await bench.api.call(v1.delete, { id });
    assert.deepEqual((await bench.api.call(v1.list, { id })).items, []);

    const [created, deleted] = await eventsAbout(bench.db, id);
    assert.equal(created?.bodyType, 'chainguard.platform.events.Subscription');
    assert.deepEqual(created?.body, { id, sink });
    assert.equal(deleted?.type, 'dev.chainguard.api.events.subscription.deleted.v1');
    assert.equal(deleted?.body, null, 'a deletion says no more than that');
  });

  test('what is wrong is named as v1 knows it', async () => {
    const group = await bench.newGroup();
    const bad = { parentId: group, subscription: { sink: 'http://sink.invalid' } };
    await rejects(bench.api.call(v1.create, bad), Code.INVALID_ARGUMENT, (error) =>
      assert.deepEqual(error.fields, ['sink']),
    );
    await rejects(bench.api.call(v1.delete, { id: `${group}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
  });
});
