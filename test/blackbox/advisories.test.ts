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
import { newAdvisoryId } from '../../src/domains/vulnerabilities/advisory-id.ts';
import { callerWith, stranger } from '../support/callers.ts';
import { type Bench, everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';

const { getAdvisory, listAdvisories } = AdvisoriesService.method;
const { importAdvisories } = AdvisoryImportsService.method;
const { deleteGroup } = GroupsService.method;

type Given = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;
type Filters = Partial<Omit<ListAdvisoriesRequest, '$typeName' | '$unknown' | 'uidp'>>;

async function load({ api }: Pick<Bench, 'api'>, parent: string, advisories: Given[]): Promise<void> {
  const { created, refusals } = await api.call(importAdvisories, { parent, advisories });
  assert.deepEqual([created, refusals], [advisories.length, []]);
}

const SHELF: readonly Given[] = [
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

everywhere('advisories', (bench) => {
  let group: string;
  /** Ids are unique in an organization, and both wires use one, so each has ids of its own. */
  const own = new Map<string, string>();
  before(async () => {
    group = await bench.newGroup();
    for (const id of [OPENSSL, DJANGO, ZLIB]) own.set(id, newAdvisoryId());
    await load(
      bench,
      group,
      SHELF.map((given) => ({ ...given, advisoryId: own.get(given.advisoryId ?? '') ?? '' })),
    );
  });

  const list = (filters: Filters) => bench.api.call(listAdvisories, { ...filters, uidp: { descendantsOf: group } });
  const namesOf = (advisories: readonly Advisory[]) => advisories.map(({ artifactName }) => artifactName);

  /** Both what is found, newest first, and how many that are. */
  async function finds(filters: Filters, ...names: string[]): Promise<void> {
    const { advisories, totalCount } = await list({ ...filters, orderBy: 'update_time desc' });
    assert.deepEqual(namesOf(advisories), names, JSON.stringify(filters));
    assert.equal(totalCount, BigInt(names.length), JSON.stringify(filters));
    const unordered = await list(filters);
    assert.deepEqual(namesOf(unordered.advisories).sort(), [...names].sort(), JSON.stringify(filters));
  }

  test('one can be read with all it has', async () => {
    const [found] = (await list({ artifactNames: ['openssl'] })).advisories;
    assert.ok(found);
    assert.match(found.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.equal(found.advisoryId, own.get(OPENSSL));
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
    assert.deepEqual(await bench.api.call(getAdvisory, { uid: found.uid }), found);
  });

  test('what is not there, and what one may not see', async () => {
    const { api, as, server } = bench;
    const missing = `${group}/${'0'.repeat(16)}`;
    const error = await rejects(api.call(getAdvisory, { uid: missing }), Code.NOT_FOUND);
    assert.equal(error.detail('ResourceInfo')?.resourceName, missing);
    assert.deepEqual((await rejects(api.call(getAdvisory, { uid: 'x' }), Code.INVALID_ARGUMENT)).fields, ['uid']);
    const nobody = as(await (await stranger(server, group)).token());
    const [{ uid }] = (await list({})).advisories as [Advisory];
    for (const one of [uid, missing]) {
      assert.match(
        (await rejects(nobody.call(getAdvisory, { uid: one }), Code.PERMISSION_DENIED)).message,
        /advisories\.list/,
      );
    }
    assert.deepEqual((await nobody.call(listAdvisories, {})).advisories, []);
    await rejects(api.call(listAdvisories, {}, {}), Code.UNAUTHENTICATED);
  });

  test('every filter by itself', async () => {
    await finds({}, 'zlib', 'py3-Django', 'openssl');
    await finds({ advisoryIds: [own.get(OPENSSL) ?? ''] }, 'openssl');
    await finds({ advisoryIds: [own.get(OPENSSL)?.toLowerCase() ?? '', own.get(ZLIB) ?? ''] }, 'zlib', 'openssl');
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

  test('a search finds every word, in ids and names and parts of names', async () => {
    await finds({ query: 'django' }, 'py3-Django');
    await finds({ query: 'PY3-DJANGO' }, 'py3-Django');
    await finds({ query: 'py3' }, 'py3-Django');
    await finds({ query: 'cve-2024-0001' }, 'openssl');
    await finds({ query: `  ${own.get(ZLIB)}\t` }, 'zlib');
    await finds({ query: 'old-1' }, 'openssl');
    await finds({ query: 'openssl LIBCRYPTO ghsa-2222-3333-4444' }, 'openssl');
    await finds({ query: 'openssl django' });
    await finds({ query: 'djan' });
    await finds({ query: '2024' });
    await finds({ query: '   ' }, 'zlib', 'py3-Django', 'openssl');
  });

  test('filters hold together', async () => {
    await finds({ artifactTypes: ['apk'], eventTypes: [EventTypeFilter.FIXED] }, 'openssl');
    await finds({ artifactTypes: ['apk'], excludeEventAuthors: ['ann'] }, 'zlib');
    await finds({ query: 'zlib', artifactTypes: ['apk', 'wheel'], componentNames: ['zlib'] }, 'zlib');
    await finds({ aliases: ['CVE-2024-0001'], advisoryIds: [own.get(OPENSSL) ?? ''] }, 'openssl');
    await finds({ aliases: ['CVE-2024-0001'], advisoryIds: [own.get(ZLIB) ?? ''] });
    await finds({ eventAuthors: ['ann'], excludeEventAuthors: ['scanner'] }, 'py3-Django');
    await finds({ origin: 'zlib', artifactNames: ['openssl'] });
  });

  test('sorted, paged and counted, and no further than the caller sees', async () => {
    const { as, server } = bench;
    const [here, elsewhere] = [await bench.newGroup(group), await bench.newGroup()];
    const many = (of: string): Given[] =>
      Array.from({ length: 25 }, (_, i) => ({
        artifactName: `many ${i % 5}`,
        artifactType: 'oci',
        legacyAdvisoryId: `${of}-${i}`,
      }));
    await load(bench, here, many(here));
    await load(bench, elsewhere, many(elsewhere));
    const viewer = as(await (await callerWith(server, 'viewer', here)).token());

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
    assert.equal((await bench.api.call(listAdvisories, direct)).totalCount, 2n);
    assert.equal(
      (await bench.api.call(listAdvisories, { artifactTypes: ['oci'], uidp: { childrenOf: here } })).totalCount,
      25n,
    );
  });

  test('says which value is wrong', async () => {
    const bad = async (filters: Filters, field: string, says: RegExp) => {
      const error = await rejects(list(filters), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, [field]);
      assert.match(error.message, says);
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

  test('a group with advisories stays', async () => {
    const uid = await bench.newGroup(group);
    await load(bench, uid, [{ artifactName: 'last' }]);
    const error = await rejects(bench.api.call(deleteGroup, { uid }), Code.FAILED_PRECONDITION);
    assert.equal(error.message, 'Precondition failed: cannot delete group with child advisories');
  });
});

function keyOf(advisory: Advisory, orderBy: string): string {
  const { createTime, updateTime } = advisory;
  if (orderBy.startsWith('update_time')) return String(updateTime?.seconds);
  if (orderBy === 'create_time') return String(createTime?.seconds);
  return orderBy === 'uid' ? advisory.uid : advisory.artifactName;
}
