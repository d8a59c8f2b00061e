import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { AdvisoriesService } from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { SecurityAdvisory } from '../../src/contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import {
  Advisories,
  type Advisory,
  type AdvisoryEvent,
  type AdvisoryEventSchema,
  type AdvisoryFilter,
  type AdvisorySchema,
  EventTypeFilter,
  OrderBy,
  ReviewStatus,
} from '../../src/contract/gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { VulnerabilityImportsService } from '../../src/contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { newAdvisoryId } from '../../src/domains/advisories/advisory-id.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const v1 = Advisories.method;
const { getAdvisory } = AdvisoriesService.method;
const { importAdvisories } = AdvisoryImportsService.method;
const { importVulnerabilities } = VulnerabilityImportsService.method;
const { listDocuments, listVulnerabilityMetadata } = SecurityAdvisory.method;

type AdvisoryInit = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;

const fixed = (fixedVersion: string) => ({ case: 'fixed' as const, value: { fixedVersion } });
const scanned = {
  case: 'detection' as const,
  value: { type: { case: 'scanv1' as const, value: { subpackageName: 'libssl', componentName: 'ssl' } } },
};

const edited = (
  { $typeName: _, ...event }: AdvisoryEvent,
  change: object,
): MessageInitShape<typeof AdvisoryEventSchema> => ({
  ...event,
  ...change,
});

onEveryDatabaseAndWire('advisories in v1', (fixture) => {
  let group: string;
  before(async () => {
    group = await fixture.newGroup();
  });

  const make = (advisory: AdvisoryInit, api: Client = fixture.api): Promise<Advisory> =>
    api.call(v1.create, { parentId: group, advisory: { artifactName: 'openssl', ...advisory } });
  const list = async (filter: Partial<Omit<AdvisoryFilter, '$typeName' | '$unknown'>>): Promise<Advisory[]> =>
    (await fixture.api.call(v1.list, { uidp: { childrenOf: group }, ...filter })).items;
  const as = async (role: string): Promise<Client> =>
    fixture.as(await (await callerWithRole(fixture.server, role, group)).token());

  test('an advisory can be created, read in v1 and v2, updated and deleted', async () => {
    const events = [{ type: scanned, timestamp: timestampFromMs(1000) }];
    const made = await make({
      artifactType: 'apk',
      componentName: 'ssl',
      aliases: ['CVE-1-1'],
      legacyAdvisoryID: 'OLD-1',
      events,
    });
    assert.match(made.id, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.match(made.advisoryId, /^CGA-\w{4}-\w{4}-\w{4}$/);
    assert.notEqual(made.author, '', 'the author is the caller');
    assert.deepEqual(made.createdAt, made.updatedAt);
    assert.deepEqual(
      [made.events[0]?.timestamp, made.events[0]?.status],
      [timestampFromMs(1000), ReviewStatus.PENDING],
    );
    assert.partialDeepStrictEqual(made.events[0]?.type, scanned);
    assert.deepEqual(await list({ id: made.id }), [made]);
    const inV2 = await fixture.api.call(getAdvisory, { uid: made.id });
    assert.deepEqual([inV2.advisoryId, inV2.legacyAdvisoryId, inV2.aliases], [made.advisoryId, 'OLD-1', ['CVE-1-1']]);
    assert.partialDeepStrictEqual(inV2.events[0]?.type, {
      case: 'detection',
      value: { type: { case: 'scanv1', value: { subpackage: 'libssl', component: 'ssl' } } },
    });

    const update = { id: made.id, artifactName: 'openssl3', aliases: ['CVE-1-2'], deletedAt: timestampFromMs(9000) };
    const updated = await fixture.api.call(v1.update, update);
    assert.partialDeepStrictEqual(updated, update);
    assert.deepEqual([updated.artifactType, updated.componentName, updated.legacyAdvisoryID], ['', '', undefined]);
    assert.deepEqual([updated.events, updated.advisoryId, updated.author], [made.events, made.advisoryId, '']);
    const byAnn = await fixture.api.call(v1.update, { ...update, author: 'ann' });
    assert.equal(byAnn.author, 'ann');
    assert.equal((await fixture.api.call(v1.update, update)).author, '', 'a PUT clears what it does not contain');
    const { deletedAt: _, ...undeleted } = await fixture.api.call(v1.update, { id: made.id, artifactName: 'openssl3' });
    assert.deepEqual((await list({ id: made.id }))[0], undeleted);

    await fixture.api.call(v1.delete, { id: made.id });
    assert.deepEqual(await list({ id: made.id }), []);
    await rejects(fixture.api.call(v1.delete, { id: made.id }), Code.NOT_FOUND);
    await rejects(fixture.api.call(v1.update, { id: made.id, artifactName: 'x' }), Code.NOT_FOUND);
    await rejects(fixture.api.call(getAdvisory, { uid: made.id }), Code.NOT_FOUND);
  });

  test('events are added, listed oldest first, and replaced', async () => {
    const { id: parentId, updatedAt } = await make({});
    const { createAdvisoryEvent, listAdvisoryEvents, updateAdvisoryEvent } = v1;
    const second = await fixture.api.call(createAdvisoryEvent, {
      parentId,
      advisoryEvent: {
        type: fixed('1'),
        author: 'ann',
        timestamp: timestampFromMs(2000),
        issue: 'https://issues.test/1',
      },
    });
    assert.match(second.id, new RegExp(`^${parentId}/[0-9a-f]{16}$`));
    const advisoryEvent = { type: scanned, timestamp: timestampFromMs(1000), findings: new Uint8Array([1]) };
    const first = await fixture.api.call(createAdvisoryEvent, { parentId, advisoryEvent });
    const events = async () => (await fixture.api.call(listAdvisoryEvents, { parentId })).items;
    assert.deepEqual(await events(), [first, second]);
    assert.notEqual((await list({ id: parentId }))[0]?.updatedAt, updatedAt);

    const changed = await fixture.api.call(updateAdvisoryEvent, edited(second, { type: fixed('2') }));
    assert.deepEqual(changed, {
      ...second,
      type: { ...second.type, value: { ...second.type.value, fixedVersion: '2' } },
    });
    assert.deepEqual(await events(), [first, changed]);
    await rejects(
      fixture.api.call(updateAdvisoryEvent, { id: `${parentId}/${'0'.repeat(16)}`, type: fixed('2') }),
      Code.NOT_FOUND,
    );
  });

  test('only a caller with advisories.approve can set the review of an event', async () => {
    const creator = await as('advisories.creator');
    const approver = await as('advisories.approver');
    const approved = { type: fixed('1'), status: ReviewStatus.APPROVED };
    const denied = async (work: Promise<unknown>) => {
      assert.match((await rejects(work, Code.PERMISSION_DENIED)).message, /advisories\.approve/);
    };
    await denied(make({ events: [approved] }, creator));
    const { id: parentId } = await make({}, creator);
    await denied(creator.call(v1.createAdvisoryEvent, { parentId, advisoryEvent: approved }));
    const event = await creator.call(v1.createAdvisoryEvent, { parentId, advisoryEvent: { type: fixed('1') } });
    assert.equal(event.status, ReviewStatus.PENDING);
    await denied(creator.call(v1.updateAdvisoryEvent, { ...event, status: ReviewStatus.APPROVED }));

    const reviewed = await approver.call(v1.updateAdvisoryEvent, { ...event, status: ReviewStatus.APPROVED });
    assert.equal(reviewed.status, ReviewStatus.APPROVED);
    assert.notEqual(reviewed.reviewer, '');
    assert.deepEqual(
      await creator.call(v1.updateAdvisoryEvent, reviewed),
      reviewed,
      'an unchanged event needs no approval',
    );
    await denied(creator.call(v1.updateAdvisoryEvent, edited(reviewed, { type: fixed('2') })));
    const rewritten = await creator.call(v1.updateAdvisoryEvent, { id: event.id, type: fixed('2') });
    assert.deepEqual([rewritten.status, rewritten.reviewer], [ReviewStatus.PENDING, '']);

    const advisories = [{ artifactName: 'zlib', events: [{ type: fixed('1'), reviewState: 2 }] }];
    const statusAfter = async (client: Client) => {
      await client.call(importAdvisories, { parent: group, advisories });
      return (await list({ artifactName: ['zlib'] }))[0]?.events[0]?.status;
    };
    assert.equal(await statusAfter(creator), ReviewStatus.PENDING);
    assert.equal(await statusAfter(creator), ReviewStatus.PENDING);
    assert.equal(await statusAfter(approver), ReviewStatus.APPROVED);
    assert.equal(await statusAfter(creator), ReviewStatus.APPROVED);
  });

  test('an import keeps the review that was set in v1 on unchanged events', async () => {
    const advisoryId = newAdvisoryId();
    const advisories = [
      { advisoryId, artifactName: 'curl', events: [{ createTime: timestampFromMs(1000), type: fixed('1') }] },
    ];
    await fixture.api.call(importAdvisories, { parent: group, advisories });
    const [curl] = await list({ advisoryIds: [advisoryId] });
    const [event] = curl?.events ?? [];
    assert.ok(event);
    await fixture.api.call(v1.updateAdvisoryEvent, { ...event, status: ReviewStatus.REJECTED, reviewer: 'bob' });
    const outcome = await fixture.api.call(importAdvisories, { parent: group, advisories });
    assert.equal(outcome.unchanged, 1);
    const [after] = await list({ advisoryIds: [advisoryId] });
    assert.deepEqual([after?.events[0]?.status, after?.events[0]?.reviewer], [ReviewStatus.REJECTED, 'bob']);
  });

  test('lists support every filter and every order', async () => {
    const of = async (filter: Parameters<typeof list>[0]) =>
      (await list(filter)).map(({ artifactName }) => artifactName);
    const parent = group;
    group = await fixture.newGroup();
    try {
      const [aliases] = [['CVE-2-2']];
      await make({
        artifactName: 'b',
        artifactType: 'apk',
        componentType: 'go',
        aliases,
        deletedAt: timestampFromMs(5000),
      });
      await make({ artifactName: 'a', componentName: 'x', componentLocation: '/x', aliases: ['CVE-2-1'] });
      await make({
        artifactName: 'c',
        artifactArchitecture: 'arm',
        events: [{ type: fixed('1'), author: 'ann', reviewer: 'bob' }],
      });
      for (const [filter, names] of [
        [{ artifactName: ['a', 'c'] }, ['a', 'c']],
        [{ artifactType: ['apk'] }, ['b']],
        [{ artifactArchitecture: ['arm'] }, ['c']],
        [{ componentName: ['x'] }, ['a']],
        [{ componentType: ['go'] }, ['b']],
        [{ componentLocation: ['/x'] }, ['a']],
        [{ aliases: ['CVE-2-2'] }, ['b']],
        [{ origin: 'a' }, ['a']],
        [{ eventStatuses: [ReviewStatus.PENDING] }, ['c']],
        [{ eventAuthor: ['ann'] }, ['c']],
        [{ eventReviewer: ['bob'] }, ['c']],
        [{ excludeEventAuthor: ['ann'] }, ['a', 'b']],
        [{ eventTypes: [EventTypeFilter.FIXED] }, ['c']],
        [{ latestEventType: EventTypeFilter.FIXED }, ['c']],
      ] as const) {
        assert.deepEqual((await of(filter as never)).sort(), names, JSON.stringify(filter));
      }
      for (const [orderBy, names] of [
        [OrderBy.ID_ASC, 'bac'],
        [OrderBy.ID_DESC, 'cab'],
        [OrderBy.CREATED_AT_DESC, 'cab'],
        [OrderBy.UPDATED_AT_ASC, 'bac'],
        [OrderBy.ALIASES_ASC, 'cab'],
        [OrderBy.ALIASES_DESC, 'bac'],
        [OrderBy.DELETED_AT_DESC, 'bca'],
      ] as const) {
        assert.equal((await of({ orderBy })).join(''), names, OrderBy[orderBy]);
      }
      const page = await fixture.api.call(v1.list, {
        uidp: { childrenOf: group },
        pageSize: 2n,
        orderBy: OrderBy.ALIASES_ASC,
      });
      assert.deepEqual([page.items.length, page.totalCount], [2, 3n]);
      const { nextPageToken: pageToken } = page;
      assert.deepEqual(await of({ pageSize: 2n, orderBy: OrderBy.ALIASES_ASC, pageToken }), ['b']);
    } finally {
      group = parent;
    }
  });

  test('validation errors name the fields of v1', async () => {
    const bad = async (work: Promise<unknown>, ...fields: string[]) => {
      assert.deepEqual((await rejects(work, Code.INVALID_ARGUMENT)).fields, fields);
    };
    await bad(make({ artifactName: '' }), 'artifact_name');
    await bad(make({ advisoryId: 'CGA-1' }), 'advisory_id');
    await bad(make({ events: [{ author: 'ann' }] }), 'events[0]');
    await bad(
      make({ events: [{ type: { case: 'componentLocationChanged', value: {} } }] }),
      'component_location_changed',
    );
    await bad(list({ eventTypes: [EventTypeFilter.COMPONENT_LOCATION_CHANGED] }), 'event_types[0]');
    await bad(list({ artifactName: Array.from({ length: 101 }, String) }), 'artifact_name');
    const { id, advisoryId } = await make({ advisoryId: newAdvisoryId() });
    await bad(fixture.api.call(v1.update, { id, artifactName: 'openssl', advisoryId: newAdvisoryId() }), 'advisory_id');
    await rejects(make({ advisoryId }), Code.ALREADY_EXISTS);
    await bad(fixture.api.call(v1.createAdvisoryEvent, { parentId: id }), 'advisory_event');
  });

  test('documents and vulnerability metadata are served in v1', async () => {
    const name = `package of ${group}`;
    const { advisoryId } = await make({
      artifactName: name,
      events: [{ type: scanned, timestamp: timestampFromMs(1000) }],
    });
    const { items } = await fixture.api.call(listDocuments, { id: name });
    assert.deepEqual([items[0]?.id, items[0]?.advisories[0]?.id], [name, advisoryId]);
    assert.partialDeepStrictEqual(items[0]?.advisories[0]?.events[0]?.data, scanned);
    const id = `CVE-${group.slice(-16)}`;
    const vulnerabilities = [{ id, summary: 'Bad', severities: [{ type: 2, score: 'CVSS:3.1/AV:N' }] }];
    await fixture.api.call(importVulnerabilities, { parent: group, vulnerabilities });
    const metadata = await fixture.api.call(listVulnerabilityMetadata, { ids: [id, id] });
    assert.deepEqual([metadata.totalCount, metadata.items[0]?.severity[0]?.score], [1n, 'CVSS:3.1/AV:N']);
    assert.deepEqual(
      (await fixture.api.call(listDocuments, { id: name }, {})).items,
      [],
      'anonymous callers do not see it',
    );
  });
});
