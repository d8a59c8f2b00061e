import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { stableUid } from '../../src/domains/iam/identities/stable-uid.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole, registeredCaller } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { getIdentity, lookupIdentity, updateIdentity, updateIdentityMetadata } = IdentitiesService.method;

onEveryDatabaseAndWire('identity metadata', (fixture) => {
  const newCaller = async () => {
    const caller = await callerWithRole(fixture.server, 'viewer', await fixture.newGroup());
    return { uid: caller.uid, api: fixture.as(await caller.token()) };
  };

  test('the metadata of the caller can be set in parts', async () => {
    const { uid, api } = await newCaller();
    const first = await api.call(updateIdentityMetadata, {
      identityMetadata: { uid: 'ignored', name: 'ignored', company: 'Acme', jobTitle: 'smith', updatesOptIn: true },
    });
    const { name } = await fixture.api.call(getIdentity, { uid });
    assert.equal(first.uid, uid);
    assert.equal(first.name, name);
    assert.equal(first.company, 'Acme');
    assert.equal(first.updatesOptIn, true);

    const second = await api.call(updateIdentityMetadata, {
      identityMetadata: { product: 'registry', jobTitle: 'not in the mask' },
      updateMask: { paths: ['product', 'updates_opt_in', 'uid'] },
    });
    assert.equal(second.jobTitle, 'smith');
    assert.equal(second.product, 'registry');
    assert.equal(second.updatesOptIn, false);
    assert.equal(second.uid, uid);

    const third = await api.call(updateIdentityMetadata, {
      identityMetadata: { utmTerm: 'x' },
      updateMask: { paths: ['*'] },
    });
    assert.deepEqual(
      { company: third.company, product: third.product, jobTitle: third.jobTitle, utmTerm: third.utmTerm },
      { company: '', product: '', jobTitle: '', utmTerm: 'x' },
    );
  });

  test('an identity and its metadata share the company', async () => {
    const { uid, api } = await newCaller();
    await api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme', product: 'registry' } });
    assert.equal((await fixture.api.call(getIdentity, { uid })).company, 'Acme');
    await fixture.api.call(updateIdentity, { identity: { uid, company: 'Emca' } });
    const updated = await api.call(updateIdentityMetadata, { identityMetadata: { jobTitle: 'smith' } });
    assert.equal(updated.company, 'Emca');
    assert.equal(updated.product, 'registry');
  });

  test('the event of a metadata update is internal', async () => {
    const { uid, api } = await newCaller();
    await api.call(updateIdentityMetadata, { identityMetadata: { product: 'registry' } });
    const events = await eventsAbout(fixture.db, uid);
    const event = events.find(({ type }) => type === 'dev.chainguard.api.iam.identity.metadata.updated.v1');
    assert.deepEqual(event?.extensions, {});
    assert.equal(event?.scope, '');
    assert.equal(event?.bodyType, 'chainguard.platform.iam.v2.IdentityMetadata');
    assert.equal(event?.body?.product, 'registry');
    const sql = "SELECT DISTINCT audience FROM outbox WHERE type LIKE '%metadata.updated%'";
    assert.deepEqual(
      (await fixture.db.all(sql)).map(({ audience }) => audience),
      ['internal'],
    );
  });

  test('an invalid update names the field and changes nothing', async () => {
    const { uid, api } = await newCaller();
    const before = await fixture.api.call(getIdentity, { uid });
    const fields = async (request: object) =>
      (await rejects(api.call(updateIdentityMetadata, request), Code.INVALID_ARGUMENT)).fields;
    assert.deepEqual(await fields({}), ['identity_metadata']);
    const bad: Record<string, string> = {
      company: 'x'.repeat(256),
      jobTitle: 'two\nlines',
      product: 'x'.repeat(513),
      latestFormSubmitUrl: 'x'.repeat(2049),
    };
    for (const [field, value] of Object.entries(bad)) {
      const name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      assert.deepEqual(await fields({ identityMetadata: { [field]: value } }), [`identity_metadata.${name}`]);
    }
    const unknown = { identityMetadata: { company: 'x' }, updateMask: { paths: ['shoe_size'] } };
    assert.deepEqual(await fields(unknown), ['update_mask']);
    const { lastSeenTime: _, ...unchanged } = await fixture.api.call(getIdentity, { uid });
    assert.deepEqual(unchanged, before);
    await rejects(api.call(updateIdentityMetadata, { identityMetadata: {} }, {}), Code.UNAUTHENTICATED);
  });

  test('an update changes the update time of the identity, not the create time', async () => {
    const { uid, api } = await newCaller();
    const before = await fixture.api.call(getIdentity, { uid });
    await api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme' } });
    const after = await fixture.api.call(getIdentity, { uid });
    assert.deepEqual(after.createTime, before.createTime);
    assert.ok(after.updateTime && before.updateTime);
    assert.ok(timestampMs(after.updateTime) >= timestampMs(before.updateTime));
  });
});

let people = 0;

onEveryDatabaseAndWire('identity lookup', (fixture) => {
  test('lookup returns the future uid of an unregistered issuer and subject', async () => {
    const query = { issuer: 'https://issuer.example.com', subject: 'nobody yet' };
    const { uid } = await fixture.api.call(lookupIdentity, query);
    assert.match(uid, /^[0-9a-f]{40}$/);
    assert.equal(uid, stableUid(query.issuer, query.subject));
    assert.deepEqual((await fixture.api.call(lookupIdentity, query)).uid, uid);
    assert.notEqual((await fixture.api.call(lookupIdentity, { ...query, subject: 'another' })).uid, uid);
  });

  test('lookup returns the uid of the oldest registered identity', async () => {
    const query = { issuer: 'https://people.example.com', subject: `alice ${++people}` };
    const oldest = await registeredCaller(fixture.server, query.issuer, query.subject);
    await registeredCaller(fixture.server, query.issuer, query.subject);
    assert.equal((await fixture.api.call(lookupIdentity, query)).uid, oldest.uid);
  });

  test('lookup ignores identities of groups with the same issuer and subject', async () => {
    const { uid } = await callerWithRole(fixture.server, 'viewer', await fixture.newGroup());
    const { relationship } = await fixture.api.call(getIdentity, { uid });
    assert.ok(relationship.case === 'staticKeys');
    const { issuer, subject } = relationship.value;
    assert.equal((await fixture.api.call(lookupIdentity, { issuer, subject })).uid, stableUid(issuer, subject));
  });

  test('validation errors name the invalid field', async () => {
    const fields = async (request: object) =>
      (await rejects(fixture.api.call(lookupIdentity, request), Code.INVALID_ARGUMENT)).fields;
    assert.deepEqual(await fields({}), ['issuer', 'subject']);
    assert.deepEqual(await fields({ issuer: 'https://a\n', subject: 'x\x01' }), ['issuer', 'subject']);
    assert.deepEqual(await fields({ issuer: 'https://a', subject: 'x'.repeat(2049) }), ['subject']);
    await rejects(fixture.api.call(lookupIdentity, { issuer: 'a', subject: 'b' }, {}), Code.UNAUTHENTICATED);
  });
});
