import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { durationFromMs, type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentityProvider_SCIM_CredentialState as CredentialState,
  IdentityProvidersService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { identityProviders } from '../../src/domains/iam/identity-providers/identity-providers.ts';
import { acceptsScimToken } from '../../src/domains/iam/identity-providers/scim.ts';
import { find } from '../../src/resource/read.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { assertNotStored, capturedLog, eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createIdentityProvider, getIdentityProvider, generateScimToken, regenerateScimToken } =
  IdentityProvidersService.method;
const { revokeScimToken, setScimEnabled } = IdentityProvidersService.method;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

for (const database of databases) {
  describe(`SCIM tokens on ${database.name}`, () => {
    const { log, lines } = capturedLog();
    const tokens: string[] = [];
    let now = Date.now();
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await startTestServer(database, { log, clock: () => now });
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      await store.close();
      await server.remove();
    });

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire.name.toLowerCase(), () => wire.connect(server.url, server.token)));
    }

    test('no token is stored in plaintext or logged', async () => {
      assert.ok(tokens.length > 0 && lines.length > 0);
      await assertNotStored(store.reader, tokens);
      for (const token of tokens) assert.ok(!lines.join('').includes(token));
    });

    test('the listing index matches the stored resources', () => assertConsistent(store.reader));

    function suite(prefix: string, connect: () => Client): void {
      let api: Client;
      let org: string;
      before(async () => {
        api = connect();
        const group = { name: `${prefix} scim` };
        org = (await api.call(GroupsService.method.createGroup, { group })).uid;
      });
      after(() => api.close());

      const make = async (): Promise<string> => {
        const value = { issuer: 'https://login.example.com', clientId: 'wharf' };
        const identityProvider = {
          name: 'directory',
          defaultRole: builtinRoleUid('viewer'),
          configuration: { case: 'oidc' as const, value },
        };
        return (await api.call(createIdentityProvider, { parent: org, identityProvider })).uid;
      };
      const generate = async (identityProviderUid: string, request: object = {}) => {
        const response = await api.call(generateScimToken, { identityProviderUid, ...request });
        tokens.push(response.token);
        return response;
      };
      const regenerate = async (identityProviderUid: string, etag: string, request: object = {}) => {
        const response = await api.call(regenerateScimToken, { identityProviderUid, etag, ...request });
        tokens.push(response.token);
        return response;
      };
      const scimOf = async (uid: string) =>
        (await api.call(getIdentityProvider, { uid })).scim ?? assert.fail('no scim block');
      const accepts = async (uid: string, token: string) => {
        const stored = (await find(store.reader, identityProviders, uid)) ?? assert.fail();
        return acceptsScimToken(stored, token, now);
      };
      const ms = (time: Timestamp | undefined) => time && timestampMs(time);
      const inMs = (duration: number) => timestampFromMs(now + duration);

      test('a token can be generated, rotated, disabled and revoked', async () => {
        const uid = await make();
        const first = await generate(uid);
        assert.match(first.token, /^cgscim_[0-9a-f]{64}$/);
        assert.equal(first.endpointUrl, `${server.url}/scim/v2/${uid}`);
        assert.equal(first.identityProviderUid, uid);
        assert.equal(ms(first.expireTime), now + 365 * DAY);
        const live = await scimOf(uid);
        assert.equal(live.credentialState, CredentialState.LIVE);
        assert.equal(live.enabled, true);
        assert.equal(live.etag, first.etag);
        assert.deepEqual(live.tokenExpireTime, first.expireTime);
        assert.ok(await accepts(uid, first.token));
        assert.equal(await accepts(uid, `${first.token}0`), false);

        const second = await regenerate(uid, first.etag);
        assert.notEqual(second.token, first.token);
        assert.equal(ms(second.previousTokenExpireTime), now + HOUR);
        assert.equal(second.requestedOverlap?.seconds, 3600n);
        const rotating = await scimOf(uid);
        assert.equal(rotating.credentialState, CredentialState.ROTATING);
        assert.deepEqual(rotating.previousTokenExpireTime, second.previousTokenExpireTime);
        assert.ok((await accepts(uid, first.token)) && (await accepts(uid, second.token)));

        const third = await regenerate(uid, second.etag, { overlap: durationFromMs(MINUTE) });
        assert.deepEqual([await accepts(uid, first.token), await accepts(uid, second.token)], [false, true]);
        now += MINUTE;
        assert.deepEqual([await accepts(uid, second.token), await accepts(uid, third.token)], [false, true]);
        const rotated = await scimOf(uid);
        assert.equal(rotated.credentialState, CredentialState.LIVE);
        assert.equal(rotated.previousTokenExpireTime, undefined);

        const paused = await api.call(setScimEnabled, { identityProviderUid: uid, enabled: false, etag: third.etag });
        assert.equal(paused.enabled, false);
        assert.equal(await accepts(uid, third.token), false);
        const resumed = await api.call(setScimEnabled, { identityProviderUid: uid, enabled: true, etag: paused.etag });
        assert.ok(resumed.enabled && (await accepts(uid, third.token)));

        const revoked = await api.call(revokeScimToken, { identityProviderUid: uid });
        assert.equal(revoked.enabled, false);
        assert.equal(ms(revoked.revokeTime), now);
        assert.equal(await accepts(uid, third.token), false);
        const over = await scimOf(uid);
        assert.equal(over.credentialState, CredentialState.REVOKED);
        assert.equal(over.tokenExpireTime, undefined);
        assert.equal(over.etag, revoked.etag);
        const etags = [first, second, third, paused, resumed, revoked].map(({ etag }) => etag);
        assert.equal(new Set(etags).size, etags.length);

        const again = await generate(uid);
        assert.ok(await accepts(uid, again.token));

        const events = (await eventsAbout(store.reader, uid)).slice(1);
        assert.deepEqual(
          events.map(({ type }) => type.replace(/^dev\.chainguard\.api\.iam\.identity_providers\.(.*)\.v1$/, '$1')),
          [
            'scim_token.generated',
            'scim_token.regenerated',
            'scim_token.regenerated',
            'scim_enabled.updated',
            'scim_enabled.updated',
            'scim_token.revoked',
            'scim_token.generated',
          ],
        );
        for (const event of events) {
          assert.deepEqual(event.extensions, { group: org });
          assert.equal(event.body?.identity_provider_uid, uid);
          assert.ok(event.body?.etag && !('token' in event.body));
        }
        assert.equal(events[0]?.bodyType, 'chainguard.platform.iam.v2.GenerateScimTokenResponse');
      });

      test('there is one live token at a time, and generate or regenerate replace an expired one', async () => {
        const uid = await make();
        const first = await generate(uid, { expireTime: inMs(MINUTE) });
        await rejects(generate(uid), Code.FAILED_PRECONDITION, (error) => {
          assert.match(JSON.stringify(error.detail('PreconditionFailure')), /SCIM_TOKEN_EXISTS/);
        });
        now += MINUTE;
        assert.equal((await scimOf(uid)).credentialState, CredentialState.EXPIRED);
        assert.equal(await accepts(uid, first.token), false);
        const second = await generate(uid, { expireTime: inMs(MINUTE) });
        now += MINUTE;
        const third = await regenerate(uid, second.etag);
        assert.equal(ms(third.previousTokenExpireTime), now);
        assert.equal((await scimOf(uid)).credentialState, CredentialState.LIVE);
        assert.deepEqual([await accepts(uid, second.token), await accepts(uid, third.token)], [false, true]);
      });

      test('a previous token expires no later than its successor', async () => {
        const uid = await make();
        const first = await generate(uid);
        const second = await regenerate(uid, first.etag, { expireTime: inMs(MINUTE) });
        assert.equal(ms(second.previousTokenExpireTime), now + MINUTE);
        now += MINUTE;
        assert.deepEqual([await accepts(uid, first.token), await accepts(uid, second.token)], [false, false]);
      });

      test('a token can be generated without an expiry', async () => {
        const uid = await make();
        const { expireTime, etag } = await generate(uid, { neverExpires: true });
        assert.equal(expireTime, undefined);
        const scim = await scimOf(uid);
        assert.equal(scim.tokenExpireTime, undefined);
        assert.equal(scim.credentialState, CredentialState.LIVE);
        assert.equal(ms((await regenerate(uid, etag)).expireTime), now + 365 * DAY);
      });

      test('an outdated etag returns ABORTED and changes nothing', async () => {
        const uid = await make();
        const { etag: initial } = await scimOf(uid);
        const { token, etag } = await generate(uid);
        for (const stale of [initial, 'nonsense']) {
          await rejects(regenerate(uid, stale), Code.ABORTED);
          const off = { identityProviderUid: uid, enabled: false, etag: stale };
          await rejects(api.call(setScimEnabled, off), Code.ABORTED);
        }
        assert.equal((await scimOf(uid)).etag, etag);
        assert.ok(await accepts(uid, token));
        const race = await Promise.allSettled([1, 2, 3].map(() => regenerate(uid, etag)));
        assert.equal(race.filter(({ status }) => status === 'fulfilled').length, 1);
      });

      test('validation errors name the invalid field', async () => {
        const uid = await make();
        await rejects(regenerate(uid, (await scimOf(uid)).etag), Code.FAILED_PRECONDITION);
        const fields = async (work: Promise<unknown>) => (await rejects(work, Code.INVALID_ARGUMENT)).fields;
        assert.deepEqual(await fields(generate(uid, { expireTime: inMs(0) })), ['expire_time']);
        assert.deepEqual(await fields(generate(uid, { expireTime: inMs(-DAY) })), ['expire_time']);
        assert.deepEqual(await fields(generate(uid, { expireTime: inMs(732 * DAY) })), ['expire_time']);
        const both = { expireTime: inMs(DAY), neverExpires: true };
        assert.deepEqual(await fields(generate(uid, both)), ['never_expires']);
        const { etag } = await generate(uid, { expireTime: inMs(730 * DAY) });
        assert.deepEqual(await fields(regenerate(uid, '')), ['etag']);
        assert.deepEqual(await fields(regenerate(uid, etag, { overlap: durationFromMs(DAY + 1) })), ['overlap']);
        assert.deepEqual(await fields(regenerate(uid, etag, { overlap: durationFromMs(-1) })), ['overlap']);
        assert.deepEqual(await fields(regenerate(uid, etag, { expireTime: inMs(0) })), ['expire_time']);
        const { previousTokenExpireTime } = await regenerate(uid, etag, { overlap: durationFromMs(0) });
        assert.equal(ms(previousTokenExpireTime), now);
        const none = `${org}/${'0'.repeat(16)}`;
        await rejects(generate(none), Code.NOT_FOUND);
        await rejects(api.call(revokeScimToken, { identityProviderUid: none }), Code.NOT_FOUND);
      });

      test('revoking succeeds before a token was generated', async () => {
        const uid = await make();
        await api.call(revokeScimToken, { identityProviderUid: uid });
        assert.equal((await scimOf(uid)).credentialState, CredentialState.NOT_ISSUED);
      });

      test('a viewer cannot manage SCIM tokens', async () => {
        const uid = await make();
        const viewer = await callerWithRole(server, 'viewer', org);
        const options = { token: await viewer.token() };
        await rejects(api.call(generateScimToken, { identityProviderUid: uid }, options), Code.PERMISSION_DENIED);
        await rejects(api.call(revokeScimToken, { identityProviderUid: uid }, options), Code.PERMISSION_DENIED);
      });
    }
  });
}
