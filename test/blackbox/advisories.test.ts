import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  AdvisoriesService,
  type Advisory,
  type AdvisorySchema,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ReviewState,
} from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { newAdvisoryId } from '../../src/domains/advisories/advisory-id.ts';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { getAdvisory, listAdvisories } = AdvisoriesService.method;
const { importAdvisories } = AdvisoryImportsService.method;
const { deleteGroup } = GroupsService.method;

type AdvisoryInit = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;
type Filters = Partial<Omit<ListAdvisoriesRequest, '$typeName' | '$unknown' | 'uidp'>>;

async function load({ api }: Pick<ApiFixture, 'api'>, parent: string, advisories: AdvisoryInit[]): Promise<void> {
  const { created, refusals } = await api.call(importAdvisories, { parent, advisories });
  assert.deepEqual([created, refusals], [advisories.length, []]);
}

const ADVISORIES: readonly AdvisoryInit[] = [
  {
    advisoryId: 'CGA-2222-2222-2222',
    legacyAdvisoryId: 'OLD-1',
    author: 'ann',
    artifactName: 'openssl',
    artifactType: 'apk',
    artifactArchitecture: 'x86_64',
    componentName: 'libcrypto',
    componentType: 'binary',
    componentLocation: '/usr/lib/libcrypto.so',
    aliases: ['CVE-2024-0001', 'GHSA-2222-3333-4444'],
    events: [
      {
        author: 'scanner',
        reviewState: ReviewState.APPROVED,
        createTime: timestampFromMs(1000),
        type: { case: 'detection', value: { type: { case: 'manual', value: {} } } },
      },
      {
        author: 'ann',
        reviewer: 'bob',
        reviewState: ReviewState.PENDING,
        createTime: timestampFromMs(2000),
        type: { case: 'fixed', value: { fixedVersion: '3.1-r0' } },
      },
    ],
  },
  {
    advisoryId: 'CGA-3333-3333-3333',
    artifactName: 'py3-Django',
    artifactType: 'wheel',
    artifactArchitecture: 'aarch64',
    componentName: 'django',
    componentType: 'python',
    componentLocation: '/usr/lib/python3',
    aliases: ['CVE-2024-0002'],
    events: [
      {
        author: 'ann',
        reviewState: ReviewState.REJECTED,
        createTime: timestampFromMs(3000),
        type: { case: 'fixNotPlanned', value: { note: 'old' } },
      },
    ],
  },
  { advisoryId: 'CGA-4444-4444-4444', artifactName: 'zlib', artifactType: 'apk', componentName: 'zlib' },
];
const [OPENSSL, DJANGO, ZLIB] = ['CGA-2222-2222-2222', 'CGA-3333-3333-3333', 'CGA-4444-4444-4444'] as const;

onEveryDatabaseAndWire('advisories', (fixture) => {
  let group: string;
  /** Advisory ids are unique in an organization, which both wires share. So each wire has its own, by the ids above. */
  const advisoryIds = new Map<string, string>();
  before(async () => {
    group = await fixture.newGroup();
    for (const id of [OPENSSL, DJANGO, ZLIB]) advisoryIds.set(id, newAdvisoryId());
    await load(
      fixture,
      group,
      ADVISORIES.map((advisory) => ({ ...advisory, advisoryId: advisoryIds.get(advisory.advisoryId ?? '') ?? '' })),
    );
  });

  const list = (filters: Filters) => fixture.api.call(listAdvisories, { ...filters, uidp: { descendantsOf: group } });
  const namesOf = (advisories: readonly Advisory[]) => advisories.map(({ artifactName }) => artifactName);

  /** Asserts which advisories the filters find, newest first, and their total count. */
  async function finds(filters: Filters, ...names: string[]): Promise<void> {
    const { advisories, totalCount } = await list({ ...filters, orderBy: 'update_time desc' });
    assert.deepEqual(namesOf(advisories), names, JSON.stringify(filters));
    assert.equal(totalCount, BigInt(names.length), JSON.stringify(filters));
    const unordered = await list(filters);
    assert.deepEqual(namesOf(unordered.advisories).sort(), [...names].sort(), JSON.stringify(filters));
  }

  test('an advisory is returned with all its fields', async () => {
    const [found] = (await list({ artifactNames: ['openssl'] })).advisories;
    assert.ok(found);
    assert.match(found.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.equal(found.advisoryId, advisoryIds.get(OPENSSL));
    assert.equal(found.legacyAdvisoryId, 'OLD-1');
    assert.ok(found.createTime);
    assert.deepEqual(found.updateTime, found.createTime);
    assert.deepEqual(
      found.events.map(({ type }) => type.case),
      ['detection', 'fixed'],
    );
    for (const event of found.events) {
      assert.match(event.uid, new RegExp(`^${found.uid}/[0-9a-f]{16}$`));
      assert.deepEqual(event.updateTime, found.createTime);
    }
    assert.deepEqual(found.events[1]?.createTime, timestampFromMs(2000));
    assert.deepEqual(await fixture.api.call(getAdvisory, { uid: found.uid }), found);
  });

  test('a missing advisory is not found, and one out of reach is denied', async () => {
    const { api, as, server } = fixture;
    const missing = `${group}/${'0'.repeat(16)}`;
    const error = await rejects(api.call(getAdvisory, { uid: missing }), Code.NOT_FOUND);
    assert.equal(error.detail('ResourceInfo')?.resourceName, missing);
    assert.deepEqual((await rejects(api.call(getAdvisory, { uid: 'x' }), Code.INVALID_ARGUMENT)).fields, ['uid']);
    const unprivileged = as(await (await callerWithoutRole(server, group)).token());
    const [{ uid }] = (await list({})).advisories as [Advisory];
    for (const one of [uid, missing]) {
      assert.match(
        (await rejects(unprivileged.call(getAdvisory, { uid: one }), Code.PERMISSION_DENIED)).message,
        /advisories\.list/,
      );
    }
    await rejects(unprivileged.call(listAdvisories, {}), Code.PERMISSION_DENIED);
    await rejects(api.call(listAdvisories, {}, {}), Code.UNAUTHENTICATED);
  });

  test('each filter works alone', async () => {
    await finds({}, 'zlib', 'py3-Django', 'openssl');
    await finds({ advisoryIds: [advisoryIds.get(OPENSSL) ?? ''] }, 'openssl');
    await finds(
      { advisoryIds: [advisoryIds.get(OPENSSL)?.toLowerCase() ?? '', advisoryIds.get(ZLIB) ?? ''] },
      'zlib',
      'openssl',
    );
    await finds({ legacyAdvisoryIds: ['OLD-1', 'OLD-2'] }, 'openssl');
    await finds({ artifactNames: ['zlib', 'openssl', 'nothing'] }, 'zlib', 'openssl');
    await finds({ artifactNames: ['py3-django'] });
    await finds({ artifactTypes: ['apk'] }, 'zlib', 'openssl');
    await finds({ artifactArchitectures: ['aarch64'] }, 'py3-Django');
    await finds({ componentNames: ['django', 'zlib'] }, 'zlib', 'py3-Django');
    await finds({ componentTypes: ['binary'] }, 'openssl');
    await finds({ componentLocations: ['/usr/lib/python3'] }, 'py3-Django');
    await finds({ aliases: ['CVE-2024-0002', 'cve-2024-0001'] }, 'py3-Django', 'openssl');
    await finds({ origin: 'openssl' }, 'openssl');
    await finds({ eventReviewStates: [ReviewState.REJECTED, ReviewState.PENDING] }, 'py3-Django', 'openssl');
    await finds({ eventAuthors: ['ann'] }, 'py3-Django', 'openssl');
    await finds({ excludeEventAuthors: ['scanner'] }, 'zlib', 'py3-Django');
    await finds({ excludeEventAuthors: ['scanner', 'ann'] }, 'zlib');
    await finds({ excludeEventAuthors: ['nobody'] }, 'zlib', 'py3-Django', 'openssl');
    await finds({ eventReviewers: ['bob'] }, 'openssl');
    await finds({ eventTypes: [EventTypeFilter.DETECTION] }, 'openssl');
    await finds({ eventTypes: [EventTypeFilter.FIXED, EventTypeFilter.FIX_NOT_PLANNED] }, 'py3-Django', 'openssl');
    await finds({ latestEventType: EventTypeFilter.FIXED }, 'openssl');
    await finds({ latestEventType: EventTypeFilter.DETECTION });
  });

  test('a query matches all of its words, in ids, names and parts of names', async () => {
    await finds({ query: 'django' }, 'py3-Django');
    await finds({ query: 'PY3-DJANGO' }, 'py3-Django');
    await finds({ query: 'py3' }, 'py3-Django');
    await finds({ query: 'cve-2024-0001' }, 'openssl');
    await finds({ query: `  ${advisoryIds.get(ZLIB)}\t` }, 'zlib');
    await finds({ query: 'old-1' }, 'openssl');
    await finds({ query: 'openssl LIBCRYPTO ghsa-2222-3333-4444' }, 'openssl');
    await finds({ query: 'openssl django' });
    await finds({ query: 'djan' });
    await finds({ query: '2024' });
    await finds({ query: '   ' }, 'zlib', 'py3-Django', 'openssl');
  });

  test('combined filters must all match', async () => {
    await finds({ artifactTypes: ['apk'], eventTypes: [EventTypeFilter.FIXED] }, 'openssl');
    await finds({ artifactTypes: ['apk'], excludeEventAuthors: ['ann'] }, 'zlib');
    await finds({ query: 'zlib', artifactTypes: ['apk', 'wheel'], componentNames: ['zlib'] }, 'zlib');
    await finds({ aliases: ['CVE-2024-0001'], advisoryIds: [advisoryIds.get(OPENSSL) ?? ''] }, 'openssl');
    await finds({ aliases: ['CVE-2024-0001'], advisoryIds: [advisoryIds.get(ZLIB) ?? ''] });
    await finds({ eventAuthors: ['ann'], excludeEventAuthors: ['scanner'] }, 'py3-Django');
    await finds({ origin: 'zlib', artifactNames: ['openssl'] });
  });

  test('advisories are sorted, paged and counted, within the reach of the caller', async () => {
    const { as, server } = fixture;
    const [here, elsewhere] = [await fixture.newGroup(group), await fixture.newGroup()];
    const many = (of: string): AdvisoryInit[] =>
      Array.from({ length: 25 }, (_, i) => ({
        artifactName: `many ${i % 5}`,
        artifactType: 'oci',
        legacyAdvisoryId: `${of}-${i}`,
      }));
    await load(fixture, here, many(here));
    await load(fixture, elsewhere, many(elsewhere));
    const viewer = as(await (await callerWithRole(server, 'viewer', here)).token());

    for (const [filters, total] of [
      [{ artifactTypes: ['oci'] }, 25],
      [{ artifactNames: ['many 1', 'many 3'] }, 10],
      [{}, 25],
    ] as const) {
      for (const orderBy of ['update_time desc', 'update_time', 'artifact_name desc', 'create_time', 'uid']) {
        const seen: Advisory[] = [];
        let pageToken = '';
        do {
          const page = await viewer.call(listAdvisories, { ...filters, orderBy, pageSize: 7, pageToken } as Filters);
          assert.equal(page.totalCount, BigInt(total));
          seen.push(...page.advisories);
          pageToken = page.nextPageToken;
        } while (pageToken !== '');
        assert.equal(new Set(seen.map(({ uid }) => uid)).size, total);
        assert.ok(seen.every(({ uid }) => uid.startsWith(`${here}/`)));
        const keys = seen.map((one) => keyOf(one, orderBy));
        const expected = keys.toSorted();
        assert.deepEqual(keys, orderBy.endsWith('desc') ? expected.reverse() : expected, orderBy);
      }
    }
    const skipped = await viewer.call(listAdvisories, {
      artifactTypes: ['oci'],
      skip: 20,
      orderBy: 'update_time desc',
    });
    assert.deepEqual([skipped.skipped, skipped.advisories.length], [20, 5]);
    assert.equal((await viewer.call(listAdvisories, { uidp: { childrenOf: group } })).totalCount, 0n);
    assert.equal((await list({ artifactTypes: ['oci'] })).totalCount, 25n);
    const direct = { uidp: { childrenOf: group }, artifactTypes: ['oci', 'apk'] };
    assert.equal((await fixture.api.call(listAdvisories, direct)).totalCount, 2n);
    assert.equal(
      (await fixture.api.call(listAdvisories, { artifactTypes: ['oci'], uidp: { childrenOf: here } })).totalCount,
      25n,
    );
  });

  test('validation errors name the invalid value', async () => {
    const bad = async (filters: Filters, field: string, pattern: RegExp) => {
      const error = await rejects(list(filters), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, [field]);
      assert.match(error.message, pattern);
    };
    await bad(
      { eventTypes: [EventTypeFilter.FIXED, EventTypeFilter.UNSPECIFIED] },
      'event_types[1]',
      /must be one of EVENT_TYPE_FILTER_DETECTION, /,
    );
    await bad({ eventReviewStates: [ReviewState.UNSPECIFIED] }, 'event_review_states[0]', /REVIEW_STATE_PENDING/);
    await bad({ aliases: Array.from({ length: 101 }, (_, i) => `CVE-1-${i}`) }, 'aliases', /at most 100 values/);
    await bad({ query: 'a '.repeat(21) }, 'query', /at most 20 words/);
    await bad({ orderBy: 'component_name' }, 'order_by', /artifact_name, advisory_id, aliases, delete_time, uid/);
  });

  test('a group with advisories cannot be deleted', async () => {
    const uid = await fixture.newGroup(group);
    await load(fixture, uid, [{ artifactName: 'last' }]);
    const error = await rejects(fixture.api.call(deleteGroup, { uid }), Code.FAILED_PRECONDITION);
    assert.equal(error.message, 'Precondition failed: cannot delete group with child advisories');
  });
});

function keyOf(advisory: Advisory, orderBy: string): string {
  const { createTime, updateTime } = advisory;
  if (orderBy.startsWith('update_time')) return String(updateTime?.seconds);
  if (orderBy === 'create_time') return String(createTime?.seconds);
  return orderBy === 'uid' ? advisory.uid : advisory.artifactName;
}
