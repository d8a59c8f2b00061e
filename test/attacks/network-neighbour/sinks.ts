import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { Code } from '../../../src/base/errors.ts';
import { SubscriptionsService } from '../../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { Handshake, SinkState, SinksService } from '../../../src/contract/gen/wharfinger/events/v1/sinks_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { rejects } from '../../support/rejects.ts';
import { startSink } from '../../support/sink.ts';
import { subscribe } from '../../support/subscribe.ts';

const { createSubscription } = SubscriptionsService.method;
const { getSink, updateSink } = SinksService.method;

/** Stopped, so that the number of requests depends on the intervals alone. */
const now = systemClock();
let skew = 0;

onEveryDatabaseAndWire(
  'sinks that have never accepted anything',
  (fixture) => {
    /** Waits until nothing can be sent to the sink at the present time. */
    const isQuiet = (uid: string) =>
      pollUntil(
        async () =>
          fixture.db.get<{ due: number | null; lease: string | null }>(
            'SELECT due, lease FROM sink WHERE subscription = $1',
            uid,
          ),
        (row) => row?.lease === null && (row.due === null || row.due > now + skew),
      );

    test('a new sink gets one request at a time, at growing intervals, until it accepts one', async (t) => {
      const sink = await startSink();
      t.after(() => sink.close());
      sink.handler = (_, response) => {
        response.writeHead(404).end();
        return true;
      };
      const group = await fixture.newGroup('');
      const { uid } = await subscribe(fixture.wire, fixture.server, group, sink.url);
      for (let n = 0; n < 10; n++) await fixture.newGroup(group);
      // Intervals of 10, 20 and 40 seconds.
      for (const [attempts, seconds] of [10, 20, 40].entries()) {
        await pollUntil(
          async () => sink.received.length,
          (count) => count > attempts,
        );
        await isQuiet(uid);
        assert.equal(sink.received.length, attempts + 1);
        skew += seconds * 1000 - 1;
        await isQuiet(uid);
        assert.equal(sink.received.length, attempts + 1);
        skew += 1;
      }
      sink.handler = undefined;
      await pollUntil(
        async () => new Set(sink.received.map(({ attributes }) => attributes.id)).size,
        (count) => count === 11,
      );
      await isQuiet(uid);
      const { state, acceptTime } = await fixture.api.call(getSink, { uid });
      assert.equal(state, SinkState.WORKING);
      assert.ok(acceptTime);
    });

    test('a sink with a required handshake gets no event before it has permitted deliveries', async (t) => {
      const sink = await startSink();
      t.after(() => sink.close());
      // A server that answers everything with success has not permitted anything.
      const group = await fixture.newGroup('');
      const { uid } = await subscribe(fixture.wire, fixture.server, group, sink.url);
      await pollUntil(
        async () => sink.received.length,
        (count) => count === 1,
      );
      await isQuiet(uid);
      const { handshake } = await fixture.api.call(updateSink, { uid, handshake: Handshake.REQUIRED });
      assert.equal(handshake, Handshake.REQUIRED);
      const subject = await fixture.newGroup(group);
      await pollUntil(
        async () => sink.received.length,
        (count) => count === 2,
      );
      await isQuiet(uid);
      const origin = new URL(fixture.server.url).hostname;
      assert.equal(sink.received[1]?.method, 'OPTIONS');
      assert.equal(sink.received[1]?.headers['webhook-request-origin'], origin);
      assert.equal(sink.received.length, 2);

      sink.handler = ({ method }, response) => {
        if (method !== 'OPTIONS') return false;
        response.writeHead(200, { 'webhook-allowed-origin': origin, 'webhook-allowed-rate': '120' }).end();
        return true;
      };
      skew += 60_000;
      await pollUntil(
        async () => sink.received.at(-1)?.attributes.subject,
        (received) => received === subject,
      );
      assert.equal(sink.received.at(-1)?.headers.origin, origin);
      assert.equal((await fixture.api.call(getSink, { uid })).allowedRate, 120);
      const error = await rejects(fixture.api.call(updateSink, { uid }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['handshake']);
    });

    test('a sink URL with control characters, spaces or credentials is refused, and so is this server', async () => {
      const parent = await fixture.newGroup();
      const bad = [
        'https://example.com/\r\nhost: internal',
        'https://exam\nple.com/',
        'https://example.com/\thook',
        '\u0000https://example.com/',
        ' https://example.com/hook',
        'https://example.com/hook ',
        'https://example.com/a b',
        'https://example.com/\u0085',
        'https://example.com/\u2028',
        'https://example.com/\u202e',
        'https://user@example.com/',
        'https:\\\\example.com\\hook',
        `${fixture.server.url}/events/v2/subscriptions`,
      ];
      for (const sink of bad) {
        const error = await rejects(
          fixture.api.call(createSubscription, { parent, subscription: { sink } }),
          Code.INVALID_ARGUMENT,
        );
        assert.deepEqual(error.fields, ['sink'], JSON.stringify(sink));
      }
      await fixture.api.call(createSubscription, {
        parent,
        subscription: { sink: 'https://sink.invalid/a?b=c%0d%0a' },
      });
    });
  },
  { env: { WHARF_ALLOW_INSECURE_SINKS: 'true' }, clock: () => now + skew },
);
