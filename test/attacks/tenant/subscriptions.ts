import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { Capability } from '../../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../../support/callers.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { startSink, type TestSink } from '../../support/sink.ts';
import { subscribe } from '../../support/subscribe.ts';

const { createGroup } = GroupsService.method;
const { createIdentity } = IdentitiesService.method;
const { createRole } = RolesService.method;
const { createRoleBinding } = RoleBindingsService.method;

const SUBSCRIPTION_EVENT = 'dev.chainguard.api.events.subscription.created.v1';
const SECRET = 'acquisition of example corp';
const MAX_SUBSCRIPTIONS = 30;
/** Requests per second. Ten seconds of it may be sent at once. */
const RATE = 1;
const BURST = 10 * RATE;

let markers = 0;

/** Creates an event that every subscriber may read, and waits until the sink has received it. */
async function receivesMarker({ server, wire }: ApiFixture, group: string, sink: TestSink): Promise<void> {
  const marker = `https://sink.invalid/marker-${++markers}`;
  await subscribe(wire, server, group, marker);
  await pollUntil(
    async () => sink.received.some(({ body }) => body.includes(marker)),
    (isReceived) => isReceived,
  );
}

/** Creates an identity and a group whose names the attacker must not learn. */
async function createSecrets({ api }: ApiFixture, group: string): Promise<void> {
  const value = { issuer: 'https://issuer.test', subject: SECRET };
  await api.call(createIdentity, {
    parent: group,
    identity: { name: SECRET, relationship: { case: 'claimMatch', value: literalMatch(value) } },
  });
  await api.call(createGroup, { parent: group, group: { name: `${SECRET} ${++markers}` } });
}

const literalMatch = ({ issuer, subject }: { issuer: string; subject: string }) => ({
  iss: { case: 'issuer' as const, value: issuer },
  sub: { case: 'subject' as const, value: `${subject} ${++markers}` },
  aud: { case: 'audience' as const, value: 'attack' },
});

onEveryDatabaseAndWire(
  'events that a tenant may not read',
  (fixture) => {
    test('a subscription receives no event about a resource that its maker may not read', async (t) => {
      const group = await fixture.newGroup();
      const { uid: role } = await fixture.api.call(createRole, {
        parent: group,
        role: {
          name: 'subscriber',
          capabilities: [Capability.CAP_EVENTS_SUBSCRIPTION_CREATE, Capability.CAP_EVENTS_SUBSCRIPTION_LIST],
        },
      });
      const attacker = await callerWithRole(fixture.server, role, group);
      const sink = await startSink();
      t.after(() => sink.close());
      await subscribe(fixture.wire, { url: fixture.server.url, token: await attacker.token() }, group, sink.url);
      await createSecrets(fixture, group);
      await receivesMarker(fixture, group, sink);
      assert.deepEqual([...new Set(sink.received.map(({ attributes }) => attributes.type))], [SUBSCRIPTION_EVENT]);
      assert.ok(!sink.received.some(({ body }) => body.includes(SECRET)));

      await fixture.api.call(createRoleBinding, {
        parent: group,
        roleBinding: { identityUid: attacker.uid, roleUid: builtinRoleUid('viewer') },
      });
      await createSecrets(fixture, group);
      await pollUntil(
        async () => sink.received.filter(({ body }) => body.includes(SECRET)).length,
        (count) => count === 2,
      );
    });

    test('a token that is restricted to subscriptions cannot subscribe to what it may not read', async (t) => {
      const group = await fixture.newGroup();
      const attacker = await callerWithRole(fixture.server, 'editor', group);
      const { token } = await fixture.as(await attacker.token()).call(SecurityTokenService.method.exchange, {
        aud: [fixture.server.url],
        cap: ['subscriptions.create', 'subscriptions.list'],
      });
      const sink = await startSink();
      t.after(() => sink.close());
      await subscribe(fixture.wire, { url: fixture.server.url, token }, group, sink.url);
      await createSecrets(fixture, group);
      await receivesMarker(fixture, group, sink);
      assert.ok(!sink.received.some(({ body }) => body.includes(SECRET)));
    });
  },
  { env: { WHARF_ALLOW_INSECURE_SINKS: 'true' } },
);

/** Stopped, so that the number of requests depends on the limits alone. */
const now = systemClock();
let skew = 0;

onEveryDatabaseAndWire(
  'amplification by subscriptions',
  (fixture) => {
    /** Each subscription receives the events of its own creation and of every later one. */
    async function subscribeOften(sink: TestSink): Promise<void> {
      const group = await fixture.newGroup('');
      for (let n = 0; n < MAX_SUBSCRIPTIONS; n++) {
        await subscribe(fixture.wire, fixture.server, group, `${sink.url}/${n}`);
      }
    }

    /** Waits until every event has its deliveries and nothing can be sent at the present time. */
    const isQuiet = () =>
      pollUntil(
        async () => {
          const at = now + skew;
          const events = await fixture.db.get<{ n: number }>('SELECT count(*) AS n FROM outbox WHERE expires IS NULL');
          const due = await fixture.db.get<{ n: number }>(
            'SELECT count(*) AS n FROM sink WHERE due <= $1 OR lease IS NOT NULL',
            at,
          );
          return (events?.n ?? 0) + (due?.n ?? 0);
        },
        (waiting) => waiting === 0,
      );

    test(`${MAX_SUBSCRIPTIONS} subscriptions make the server send few requests to an address that refuses`, async (t) => {
      const victim = await startSink();
      t.after(() => victim.close());
      victim.handler = (_, response) => {
        response.writeHead(404).end();
        return true;
      };
      await subscribeOften(victim);
      await isQuiet();
      assert.equal(victim.received.length, 1);
      for (let minute = 0; minute < 3; minute++) {
        skew += 60_000;
        await pollUntil(
          async () => victim.received.length,
          (count) => count > 1 + minute,
        );
        await isQuiet();
      }
      assert.ok(victim.received.length <= 4, `${victim.received.length} requests in three minutes`);
    });

    test('the rate of requests that one organization causes at one address is limited', async (t) => {
      const victim = await startSink();
      t.after(() => victim.close());
      await subscribeOften(victim);
      await isQuiet();
      assert.equal(victim.received.length, BURST);
      skew += 5_000;
      await pollUntil(
        async () => victim.received.length,
        (count) => count === BURST + 5 * RATE,
      );
      await isQuiet();
      assert.equal(victim.received.length, BURST + 5 * RATE);
    });
  },
  { env: { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_SINK_RATE: String(RATE) }, clock: () => now + skew },
);
