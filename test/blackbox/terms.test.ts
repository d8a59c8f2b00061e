import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { acceptTerms, listTermsAcceptances } = TermsService.method;
const { deleteGroup } = GroupsService.method;

const ALL = ['guardener-tos.v1', 'sfdpa.v1', 'skills-tos.v1'];

onEveryDatabaseAndWire('terms', (fixture) => {
  const accept = (group: string, ...documentIds: string[]) => fixture.api.call(acceptTerms, { group, documentIds });
  const accepted = async (group: string, request: object = {}) =>
    (await fixture.api.call(listTermsAcceptances, { group, ...request })).termsAcceptances;
  const acceptedEvents = async (group: string) =>
    (await eventsAbout(fixture.db, group)).filter(({ type }) => type === 'dev.chainguard.api.iam.terms.accepted.v1');

  test('an acceptance is recorded with identity, organization and time', async () => {
    const group = await fixture.newGroup();
    const owner = await callerWithRole(fixture.server, 'owner', group);
    const response = await fixture
      .as(await owner.token())
      .call(acceptTerms, { group, documentIds: ['sfdpa.v1', 'skills-tos.v1', 'sfdpa.v1'] });
    assert.equal(response.group, group);
    assert.deepEqual(response.documentIds, ['sfdpa.v1', 'skills-tos.v1']);
    const found = await accepted(group, { orderBy: 'doc_id' });
    assert.deepEqual(
      found.map(({ docId, acceptedBy, orgUid }) => ({ docId, acceptedBy, orgUid })),
      ['sfdpa.v1', 'skills-tos.v1'].map((docId) => ({ docId, acceptedBy: owner.uid, orgUid: fixture.org })),
    );
    for (const { uid, createTime, updateTime } of found) {
      assert.match(uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
      assert.ok(createTime && updateTime);
    }
  });

  test('accepting again changes nothing, also concurrently', async () => {
    const group = await fixture.newGroup();
    await Promise.all([accept(group, ...ALL), accept(group, ...ALL), accept(group, ...ALL)]);
    const first = await accepted(group);
    assert.equal(first.length, 3);
    assert.deepEqual((await accept(group, 'sfdpa.v1')).documentIds, ['sfdpa.v1']);
    assert.deepEqual(await accepted(group), first);
    const [event, ...more] = await acceptedEvents(group);
    assert.deepEqual(more, []);
    assert.equal(event?.scope, group);
    assert.deepEqual(event?.extensions, { group });
    assert.equal(event?.bodyType, 'chainguard.platform.iam.AcceptTermsResponse');
    assert.deepEqual(event?.body, { group, document_ids: ALL });
  });

  test('newly accepted documents emit an event', async () => {
    const group = await fixture.newGroup();
    await accept(group, 'sfdpa.v1');
    await accept(group, ...ALL);
    assert.equal((await acceptedEvents(group)).length, 2);
    assert.equal((await accepted(group)).length, 3);
  });

  test('acceptances are listed for one group, in pages', async () => {
    const group = await fixture.newGroup();
    const child = await fixture.newGroup(group);
    await accept(group, ...ALL);
    await accept(child, 'sfdpa.v1');
    const page = await fixture.api.call(listTermsAcceptances, { group, orderBy: 'doc_id desc', pageSize: 2 });
    assert.deepEqual(
      page.termsAcceptances.map(({ docId }) => docId),
      ['skills-tos.v1', 'sfdpa.v1'],
    );
    assert.equal(page.totalCount, 3n);
    const rest = await accepted(group, { orderBy: 'doc_id desc', pageSize: 2, pageToken: page.nextPageToken });
    assert.deepEqual(
      rest.map(({ docId }) => docId),
      ['guardener-tos.v1'],
    );
    const skipping = await fixture.api.call(listTermsAcceptances, { group, orderBy: 'doc_id', skip: 2 });
    assert.equal(skipping.skipped, 2);
    assert.deepEqual(
      skipping.termsAcceptances.map(({ docId }) => docId),
      ['skills-tos.v1'],
    );
    const foreign = { group: child, orderBy: 'doc_id desc', pageToken: page.nextPageToken };
    const error = await rejects(fixture.api.call(listTermsAcceptances, foreign), Code.INVALID_ARGUMENT);
    assert.deepEqual(error.fields, ['page_token']);
  });

  test('validation errors name the invalid documents', async () => {
    const group = await fixture.newGroup();
    const fields = async (...documentIds: string[]) =>
      (await rejects(accept(group, ...documentIds), Code.INVALID_ARGUMENT)).fields;
    assert.deepEqual(await fields(), ['document_ids']);
    assert.deepEqual(await fields('sfdpa.v1', 'sfdpa.v2', ''), ['document_ids[1]', 'document_ids[2]']);
    assert.deepEqual(await accepted(group), []);
    await rejects(accept(`${group}/${'0'.repeat(16)}`, 'sfdpa.v1'), Code.NOT_FOUND);
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    await rejects(viewer.call(acceptTerms, { group, documentIds: ['sfdpa.v1'] }), Code.PERMISSION_DENIED);
    await viewer.call(listTermsAcceptances, { group });
    await rejects(viewer.call(listTermsAcceptances, { group: fixture.org }), Code.PERMISSION_DENIED);
  });

  test('a group with acceptances can be deleted', async () => {
    const group = await fixture.newGroup();
    await accept(group, ...ALL);
    await fixture.api.call(deleteGroup, { uid: group });
  });
});
