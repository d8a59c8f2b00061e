import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { Subscriptions } from '../../src/contract/gen/platform/events/v1/subscriptions.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const v1 = Subscriptions.method;
const { getSubscription } = SubscriptionsService.method;

onEveryDatabaseAndWire('v1 subscriptions', (fixture) => {
  const sink = 'https://sink.invalid/hook';

  test('v1 and v2 serve the same subscriptions', async () => {
    const group = await fixture.newGroup();
    const { id } = await fixture.api.call(v1.create, { parentId: group, subscription: { sink } });
    assert.equal((await fixture.api.call(getSubscription, { uid: id })).sink, sink);
    for (const filter of [{ id }, { uidp: { childrenOf: group } }, { uidp: { descendantsOf: group } }]) {
      const { items } = await fixture.api.call(v1.list, filter);
      assert.deepEqual(
        items.map((item) => [item.id, item.sink]),
        [[id, sink]],
      );
    }
    await fixture.api.call(v1.delete, { id });
    assert.deepEqual((await fixture.api.call(v1.list, { id })).items, []);

    const [created, deleted] = await eventsAbout(fixture.db, id);
    assert.equal(created?.bodyType, 'chainguard.platform.events.Subscription');
    assert.deepEqual(created?.body, { id, sink });
    assert.equal(deleted?.type, 'dev.chainguard.api.events.subscription.deleted.v1');
    assert.deepEqual(deleted?.body, { id });
  });

  test('validation errors name the fields of v1', async () => {
    const group = await fixture.newGroup();
    const bad = { parentId: group, subscription: { sink: 'http://sink.invalid' } };
    await rejects(fixture.api.call(v1.create, bad), Code.INVALID_ARGUMENT, (error) =>
      assert.deepEqual(error.fields, ['sink']),
    );
    await rejects(fixture.api.call(v1.delete, { id: `${group}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
  });
});
