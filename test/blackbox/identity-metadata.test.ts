import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { stableUid } from '../../src/domains/iam/identities/stable-uid.ts';
import { callerWith, person } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { getIdentity, lookupIdentity, updateIdentity, updateIdentityMetadata } = IdentitiesService.method;

everywhere('identity metadata', (bench) => {
  const newCaller = async () => {
    const caller = await callerWith(bench.server, 'viewer', await bench.newGroup());
    return { uid: caller.uid, api: bench.as(await caller.token()) };
  };

  test('people tell about themselves, a bit at a time', async () => {
    const { uid, api } = await newCaller();
    const first = await api.call(updateIdentityMetadata, {
      identityMetadata: { uid: 'ignored', name: 'ignored', company: 'Acme', jobTitle: 'smith', updatesOptIn: true },
    });
    const { name } = await bench.api.call(getIdentity, { uid });
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

  test('the company is that of the identity, whichever way it is told', async () => {
    const { uid, api } = await newCaller();
    await api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme', product: 'registry' } });
    assert.equal((await bench.api.call(getIdentity, { uid })).company, 'Acme');
    await bench.api.call(updateIdentity, { identity: { uid, company: 'Emca' } });
    const told = await api.call(updateIdentityMetadata, { identityMetadata: { jobTitle: 'smith' } });
    assert.equal(told.company, 'Emca');
    assert.equal(told.product, 'registry');
  });

  test('only whoever runs the server hears of it', async () => {
    const { uid, api } = await newCaller();
    await api.call(updateIdentityMetadata, { identityMetadata: { product: 'registry' } });
    const events = await eventsAbout(bench.db, uid);
    const event = events.find(({ type }) => type === 'dev.chainguard.api.iam.identity.metadata.updated.v1');
    assert.deepEqual(event?.extensions, {});
    assert.equal(event?.scope, '');
    assert.equal(event?.bodyType, 'chainguard.platform.iam.v2.IdentityMetadata');
    assert.equal(event?.body?.product, 'registry');
    const sql = "SELECT DISTINCT audience FROM outbox WHERE type LIKE '%metadata.updated%'";
    assert.deepEqual(
      (await bench.db.all(sql)).map(({ audience }) => audience),
      ['internal'],
    );
  });

  test('says which field is wrong, and then changes nothing', async () => {
    const { uid, api } = await newCaller();
    const before = await bench.api.call(getIdentity, { uid });
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
    assert.deepEqual(await bench.api.call(getIdentity, { uid }), before);
    await rejects(api.call(updateIdentityMetadata, { identityMetadata: {} }, {}), Code.UNAUTHENTICATED);
  });

  test('an update moves the update time of the identity, never the create time', async () => {
    const { uid, api } = await newCaller();
    const before = await bench.api.call(getIdentity, { uid });
    await api.call(updateIdentityMetadata, { identityMetadata: { company: 'Acme' } });
    const after = await bench.api.call(getIdentity, { uid });
    assert.deepEqual(after.createTime, before.createTime);
    assert.ok(after.updateTime && before.updateTime);
    assert.ok(timestampMs(after.updateTime) >= timestampMs(before.updateTime));
  });
});

let people = 0;

everywhere('identity lookup', (bench) => {
  test('a pair that nobody has registered has its uid already', async () => {
    const asked = { issuer: 'https://issuer.example.com', subject: 'nobody yet' };
    const { uid } = await bench.api.call(lookupIdentity, asked);
    assert.match(uid, /^[0-9a-f]{40}$/);
    assert.equal(uid, stableUid(asked.issuer, asked.subject));
    assert.deepEqual((await bench.api.call(lookupIdentity, asked)).uid, uid);
    assert.notEqual((await bench.api.call(lookupIdentity, { ...asked, subject: 'another' })).uid, uid);
  });

  test('somebody who is here is found under the uid they have, the oldest first', async () => {
    const asked = { issuer: 'https://people.example.com', subject: `alice ${++people}` };
    const oldest = await person(bench.server, asked.issuer, asked.subject);
    await person(bench.server, asked.issuer, asked.subject);
    assert.equal((await bench.api.call(lookupIdentity, asked)).uid, oldest.uid);
  });

  test('a machine of that name inside a group is somebody else', async () => {
    const { uid } = await callerWith(bench.server, 'viewer', await bench.newGroup());
    const { relationship } = await bench.api.call(getIdentity, { uid });
    assert.ok(relationship.case === 'staticKeys');
    const { issuer, subject } = relationship.value;
    assert.equal((await bench.api.call(lookupIdentity, { issuer, subject })).uid, stableUid(issuer, subject));
  });

  test('says which field is wrong', async () => {
    const fields = async (request: object) =>
      (await rejects(bench.api.call(lookupIdentity, request), Code.INVALID_ARGUMENT)).fields;
    assert.deepEqual(await fields({}), ['issuer', 'subject']);
    assert.deepEqual(await fields({ issuer: 'https://a\n', subject: 'x\x01' }), ['issuer', 'subject']);
    assert.deepEqual(await fields({ issuer: 'https://a', subject: 'x'.repeat(2049) }), ['subject']);
    await rejects(bench.api.call(lookupIdentity, { issuer: 'a', subject: 'b' }, {}), Code.UNAUTHENTICATED);
  });
});
