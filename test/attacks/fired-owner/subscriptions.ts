import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { Code } from '../../../src/base/errors.ts';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { SinkState, SinksService } from '../../../src/contract/gen/wharfinger/events/v1/sinks_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole } from '../../support/callers.ts';
import { capturedLog } from '../../support/inspect.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { rejects } from '../../support/rejects.ts';
import { startSink, type TestSink } from '../../support/sink.ts';
import { subscribe } from '../../support/subscribe.ts';

const { deleteIdentity } = IdentitiesService.method;
const { deleteRoleBinding, listRoleBindings } = RoleBindingsService.method;
const { getSink, takeOverSink } = SinksService.method;

const { log, lines } = capturedLog();
let skew = 0;

/** Creates a group in `parent`, and waits until the sink has received the event. */
async function receivesNewGroup({ newGroup }: ApiFixture, parent: string, sink: TestSink): Promise<string> {
  const group = await newGroup(parent);
  await receives(sink, group);
  return group;
}

const receives = (sink: TestSink, subject: string) =>
  pollUntil(
    async () => sink.received.some(({ attributes }) => attributes.subject === subject),
    (isReceived) => isReceived,
  );

const hasReceived = (sink: TestSink, subject: string): boolean =>
  sink.received.some(({ attributes }) => attributes.subject === subject);

onEveryDatabaseAndWire(
  'subscriptions of a former owner',
  (fixture) => {
    const { wire } = fixture;

    /** A group with a subscription of an owner who will be removed, and one that shows that events are delivered. */
    async function twoSubscriptions() {
      const group = await fixture.newGroup();
      const maker = await callerWithRole(fixture.server, 'owner', group);
      const sinks = [await startSink(), await startSink()] as const;
      const [sink, control] = sinks;
      const close = async () => {
        for (const one of sinks) await one.close();
      };
      await subscribe(wire, fixture.server, group, control.url);
      const { uid } = await subscribe(wire, { url: fixture.server.url, token: await maker.token() }, group, sink.url);
      await receivesNewGroup(fixture, group, sink);
      return { group, maker, uid, sink, control, close };
    }

    async function removeRoles(group: string, identity: string): Promise<void> {
      const { roleBindings } = await fixture.api.call(listRoleBindings, { uidp: { childrenOf: group } });
      for (const { uid, identityUid } of roleBindings) {
        if (identityUid === identity) await fixture.api.call(deleteRoleBinding, { uid });
      }
    }

    test('a subscription is paused when its maker has lost the role, says so, and can be taken over', async (t) => {
      const { group, maker, uid, sink, control, close } = await twoSubscriptions();
      t.after(close);
      const former = fixture.as(await maker.token());
      await removeRoles(group, maker.uid);
      const paused = await fixture.api.call(getSink, { uid });
      assert.equal(paused.state, SinkState.PAUSED);
      assert.equal(paused.maker, maker.uid);
      assert.match(paused.reason, /subscriptions\.create.*take it over/);
      const missed = await receivesNewGroup(fixture, group, control);
      assert.ok(!hasReceived(sink, missed));
      assert.ok(lines.some((line) => line.includes('paused a subscription') && line.includes(uid)));

      await rejects(former.call(takeOverSink, { uid }), Code.PERMISSION_DENIED);
      const resumed = await fixture.api.call(takeOverSink, { uid });
      assert.equal(resumed.state, SinkState.WORKING);
      await receivesNewGroup(fixture, group, sink);
      assert.ok(!hasReceived(sink, missed));
    });

    test('a subscription receives nothing after its maker was deleted', async (t) => {
      const { group, maker, uid, sink, control, close } = await twoSubscriptions();
      t.after(close);
      await fixture.api.call(deleteIdentity, { uid: maker.uid });
      const { state, reason } = await fixture.api.call(getSink, { uid });
      assert.equal(state, SinkState.PAUSED);
      assert.match(reason, /was deleted/);
      const missed = await receivesNewGroup(fixture, group, control);
      assert.ok(!hasReceived(sink, missed));
    });

    test('a delivery that waits for its next attempt is not sent after its maker was deleted', async (t) => {
      const { group, maker, uid, sink, control, close } = await twoSubscriptions();
      t.after(close);
      sink.handler = (_, response) => {
        response.writeHead(503).end();
        return true;
      };
      const waiting = await receivesNewGroup(fixture, group, sink);
      await pollUntil(
        async () => fixture.db.get<{ lease: string | null }>('SELECT lease FROM sink WHERE subscription = $1', uid),
        (row) => row?.lease === null,
      );
      const attempts = sink.received.filter(({ attributes }) => attributes.subject === waiting).length;
      await fixture.api.call(deleteIdentity, { uid: maker.uid });
      skew += 60_000;
      await receivesNewGroup(fixture, group, control);
      await pollUntil(
        async () => fixture.db.get<{ due: number }>('SELECT due FROM sink WHERE subscription = $1', uid),
        (row) => row === undefined || row.due > systemClock() + skew,
      );
      assert.equal(sink.received.filter(({ attributes }) => attributes.subject === waiting).length, attempts);
    });
  },
  {
    env: { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_DELIVERY_SCHEDULE: '0s,1s,1s' },
    clock: () => systemClock() + skew,
    log,
  },
);
