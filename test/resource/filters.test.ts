import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clone, create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { createCaller } from '../../src/access/create-caller.ts';
import { ApiError, Code } from '../../src/base/errors.ts';
import { isWithin, newUid, parentOf, ROOT, type Uid } from '../../src/base/uid.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import {
  type Advisory,
  AdvisorySchema,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ListAdvisoriesRequestSchema,
  ReviewState,
} from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { advisories } from '../../src/domains/advisories/advisories.ts';
import { defineResource, type Resource, type Stored } from '../../src/resource/definition.ts';
import { createLister, type ListRequest } from '../../src/resource/list/list.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { deleteOne, insertAll, update } from '../../src/resource/write.ts';
import type { Store } from '../../src/store/store.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases, temporaryStore } from '../support/databases.ts';

const method = methodTable(files).find(({ id }) => id.endsWith('AdvisoriesService/ListAdvisories'));
assert.ok(method);
const LIST = method.capabilities;

type Request = MessageInitShape<typeof ListAdvisoriesRequestSchema>;

/** The filters of a request. */
type Filters = Partial<Omit<ListAdvisoriesRequest, '$typeName' | '$unknown' | 'uidp'>>;

const { facetOrders: _, ...everyOrder } = advisories;

/** The same rows under declarations for which the engine chooses different access paths. */
const variants: readonly { readonly name: string; readonly resource: Resource<typeof AdvisorySchema> }[] = [
  { name: 'advisories, whose facets have one order', resource: advisories },
  { name: 'facets with every order', resource: defineResource({ ...everyOrder, kind: 'every order' }) },
  {
    name: 'facets in uid order, and references',
    resource: defineResource({
      ...advisories,
      kind: 'references',
      facetOrders: ['uid'],
      facets: Object.fromEntries(
        Object.entries(advisories.facets ?? {}).filter(([field]) => !/author|word/.test(field)),
      ),
      references: { ...advisories.references, ...pick('event_authors', 'words') },
    }),
  },
];

function pick(...fields: string[]) {
  return Object.fromEntries(
    fields.map((field) => [field, (advisory: Advisory) => [...(advisories.values[field]?.(advisory) ?? [])]]),
  );
}

const NAMES = ['zlib', 'py3-Django', 'apache-nifi-registry', 'go', 'a b'];
const COMPONENTS = ['django', 'github.com/go/zlib', 'zlib', ''];
const TYPES = ['apk', 'npm', ''];
const ALIASES = ['CVE-2024-1', 'GHSA-aaaa-bbbb-cccc', 'RHSA:1', 'CVE-2024-2'];
const PEOPLE = ['ann', 'bob', 'eve', ''];
const EVENTS = ['detection', 'fixed', 'fixNotPlanned'] as const;
const EVENT_TYPES: readonly EventTypeFilter[] = [
  EventTypeFilter.DETECTION,
  EventTypeFilter.FIXED,
  EventTypeFilter.FIX_NOT_PLANNED,
];
const STATES = [ReviewState.PENDING, ReviewState.APPROVED, ReviewState.UNSPECIFIED];
const WORDS = [
  'ZLIB',
  'django',
  'py3-django',
  'cve-2024-1',
  'rhsa:1',
  'go',
  'com',
  'a',
  'apache-nifi-registry',
  'nifi',
  'no',
];
const ROWS = 90;
const START = 1_700_000_000_000;

/** Uses few different values, so that any two filters have matching rows in common. */
const anyAdvisory = (i: number): Advisory => {
  const of = <T>(values: readonly T[], step: number): T => values[(i * step + (i >> 3)) % values.length] as T;
  return create(AdvisorySchema, {
    advisoryId: `CGA-2222-2222-${String(2222 + ((i * 37) % ROWS))}`,
    ...(i % 4 === 0 ? { legacyAdvisoryId: `OLD-1-${i % 8}` } : {}),
    artifactName: of(NAMES, 3),
    artifactType: of(TYPES, 1),
    artifactArchitecture: of(['x86_64', 'aarch64'], 1),
    componentName: of(COMPONENTS, 5),
    componentType: of(TYPES, 2),
    componentLocation: of(['/bin', '/lib', ''], 7),
    aliases: ALIASES.filter((_, at) => (i >> at) % 3 === 0),
    events: EVENTS.slice(0, i % 4).map((_, at) => ({
      author: of(PEOPLE, at + 1),
      reviewer: of(PEOPLE, at + 2),
      reviewState: of(STATES, at + 1),
      type: { case: of(EVENTS, at + 1), value: {} },
    })),
  });
};

/** The model that the index must agree with: checks each advisory on its own. */
function matches(advisory: Advisory, filters: Filters): boolean {
  const { events } = advisory;
  const anyOf = <T>(values: readonly T[] | undefined, own: readonly T[]): boolean =>
    values === undefined || values.length === 0 || values.some((value) => own.includes(value));
  const typeOf = (event: Advisory['events'][number]) => EVENT_TYPES[EVENTS.indexOf(event.type.case as 'fixed')];
  const last = events.at(-1);
  return (
    anyOf(filters.advisoryIds, [advisory.advisoryId]) &&
    anyOf(filters.legacyAdvisoryIds, [advisory.legacyAdvisoryId ?? '']) &&
    anyOf(filters.artifactNames, [advisory.artifactName]) &&
    anyOf(filters.artifactTypes, [advisory.artifactType]) &&
    anyOf(filters.artifactArchitectures, [advisory.artifactArchitecture]) &&
    anyOf(filters.componentNames, [advisory.componentName]) &&
    anyOf(filters.componentTypes, [advisory.componentType]) &&
    anyOf(filters.componentLocations, [advisory.componentLocation]) &&
    anyOf(filters.aliases, advisory.aliases) &&
    anyOf(filters.origin ? [filters.origin] : [], [advisory.artifactName]) &&
    anyOf(
      filters.eventReviewStates,
      events.map((event) => event.reviewState),
    ) &&
    anyOf(
      filters.eventAuthors,
      events.map((event) => event.author),
    ) &&
    anyOf(
      filters.eventReviewers,
      events.map((event) => event.reviewer),
    ) &&
    anyOf(
      filters.eventTypes,
      events.map((event) => typeOf(event) ?? 0),
    ) &&
    (filters.latestEventType === undefined || (last !== undefined && typeOf(last) === filters.latestEventType)) &&
    !events.some((event) => filters.excludeEventAuthors?.includes(event.author)) &&
    (filters.query ?? '').split(' ').every((word) => word === '' || isFoundBy(advisory, word.toLowerCase()))
  );
}

function isFoundBy(
  { advisoryId, legacyAdvisoryId = '', aliases, artifactName, componentName }: Advisory,
  word: string,
) {
  const wordsOf = (...texts: string[]) => texts.flatMap((text) => text.toLowerCase().split(' '));
  const partsOf = (words: string[]) => words.flatMap((one) => one.split(/[^a-z0-9]+/)).filter(Boolean);
  const isId = (one: string) => one.split('-').length > 2;
  const ids = wordsOf(advisoryId, legacyAdvisoryId, ...aliases);
  const names = wordsOf(artifactName, componentName);
  if (isId(word)) return [...ids, ...names].includes(word);
  const parts = partsOf([...ids.filter((id) => !isId(id)), ...names]);
  return partsOf([word]).every((part) => parts.includes(part));
}

const ORDERS = {
  '': ['uid'],
  'uid desc': ['-uid'],
  update_time: ['updated'],
  'update_time desc': ['-updated', '-uid'],
  artifact_name: ['artifactName'],
  'advisory_id desc': ['-advisoryId'],
  'create_time desc, artifact_name': ['-created', 'artifactName', '-uid'],
} as const satisfies Record<string, readonly string[]>;

function sorted(rows: readonly Stored[], order: keyof typeof ORDERS): string[] {
  const keyOf = (row: Stored, field: string) => ({ ...(row.message as object), ...row })[field as 'uid'];
  const compare = (a: Stored, b: Stored): number => {
    for (const term of [...ORDERS[order], 'uid']) {
      const [field, sign] = term.startsWith('-') ? [term.slice(1), -1] : [term, 1];
      const [x, y] = [keyOf(a, field), keyOf(b, field)];
      if (x !== y) return x < y ? -sign : sign;
    }
    return 0;
  };
  return [...rows].sort(compare).map(({ uid }) => uid);
}

/** Treats a refused place as an empty list: this model has no groups. test/resource/list.test.ts tests what is refused. */
const noneIfNotFound = (error: unknown): string[] =>
  error instanceof ApiError && error.code === Code.NOT_FOUND ? [] : assert.fail(String(error));

for (const database of databases) {
  for (const { name, resource } of variants) {
    describe(`filtering ${name} on ${database.name}`, () => {
      let store: Store;
      let stored: Stored[] = [];
      const lister = createLister(resource, ListAdvisoriesRequestSchema, createPageTokens(Buffer.alloc(32)));
      const org = newUid(ROOT);
      const team = newUid(org);
      const [crew, leaf] = [newUid(team), newUid(org)];
      const groups = [org, team, crew, leaf, newUid(ROOT)];

      before(async () => {
        store = await temporaryStore(database);
        await store.write(async (tx) => {
          // In batches of different times. The last group is in another organization.
          for (let i = 0; i < ROWS; i += 15) {
            const drafts = Array.from({ length: 15 }, (_, k) => {
              const parent = groups[(i + k) % 7 > 4 ? 3 : (i + k) % 7] ?? org;
              return { message: anyAdvisory(i + k), uid: newUid(parent), parent };
            });
            stored.push(...(await insertAll(tx, resource, drafts, START + ((i * 7) % 40))));
          }
          // Updates some of them and deletes others.
          for (let i = 0; i < ROWS; i += 4) {
            const before = stored[i] as Stored<Advisory>;
            const { advisoryId } = before.message;
            const message = { ...clone(AdvisorySchema, anyAdvisory(i * 11 + 5)), uid: before.uid, advisoryId };
            stored[i] = await update(tx, resource, before, { message, state: undefined }, START + 50 + (i % 3));
          }
          for (let i = 0; i < ROWS; i += 9) await deleteOne(tx, resource, stored[i] as Stored);
          stored = stored.filter((_, i) => i % 9 !== 0);
        });
      });
      after(async () => {
        await assertConsistent(store.reader, [resource]);
        await store.close();
      });

      async function all(scopes: readonly Uid[], request: Request): Promise<string[]> {
        const grants = scopes.map((group) => ({ group, capabilities: capabilitySetOf(LIST) }));
        const caller = createCaller(newUid(ROOT), undefined, grants);
        const ctx = { method: method as NonNullable<typeof method>, caller, authorization: undefined, now: 0 };
        const found: string[] = [];
        let pageToken = '';
        do {
          const message = create(ListAdvisoriesRequestSchema, { ...request, pageToken }) as unknown as ListRequest;
          const { messages, nextPageToken, totalCount } = await lister({ ...ctx, db: store.reader }, message);
          found.push(...messages.map((one) => (one as Advisory).uid));
          pageToken = nextPageToken;
          if (pageToken === '') assert.equal(totalCount, found.length, 'totalCount is the number of rows on all pages');
        } while (pageToken !== '');
        return found;
      }

      test('agrees with a model for any filters, order, caller and page size', async () => {
        const some = <T>(values: readonly T[]) =>
          fc.array(fc.constantFrom(...values.filter((v) => v !== '' && v !== 0)), { minLength: 1, maxLength: 3 });
        const filterValues = {
          advisoryIds: some(Array.from({ length: 12 }, (_, i) => anyAdvisory(i).advisoryId)),
          legacyAdvisoryIds: some(['OLD-1-0', 'OLD-1-4']),
          artifactNames: some(NAMES),
          artifactTypes: some(TYPES),
          artifactArchitectures: some(['x86_64', 'aarch64', 'none']),
          componentNames: some(COMPONENTS),
          componentTypes: some(TYPES),
          componentLocations: some(['/bin', '/lib']),
          aliases: some(ALIASES),
          origin: fc.constantFrom(...NAMES),
          eventReviewStates: some(STATES),
          eventAuthors: some(PEOPLE),
          excludeEventAuthors: some(PEOPLE),
          eventReviewers: some(PEOPLE),
          eventTypes: some(EVENT_TYPES),
          latestEventType: fc.constantFrom(...EVENT_TYPES),
          query: some(WORDS).map((words) => words.join(' ')),
        };
        const filters = fc
          .subarray(Object.keys(filterValues) as (keyof typeof filterValues)[], { maxLength: 3 })
          .chain((fields) => fc.record<Filters>(Object.fromEntries(fields.map((f) => [f, filterValues[f]]))));
        const group = fc.constantFrom(...groups);
        const uidp = fc.oneof(
          fc.constantFrom({}, { descendantsOf: org }),
          group.map((descendantsOf) => ({ descendantsOf })),
          group.map((childrenOf) => ({ childrenOf })),
          fc.array(fc.nat(stored.length - 1), { minLength: 1, maxLength: 40 }).map((indexes) => ({
            ids: indexes.map((i) => stored[i]?.uid ?? ''),
          })),
        );
        const request = fc.record({
          filters,
          uidp,
          orderBy: fc.constantFrom(...(Object.keys(ORDERS) as (keyof typeof ORDERS)[])),
          scopes: fc.oneof(fc.constant([org, ...groups.slice(4)]), fc.array(group, { minLength: 1, maxLength: 3 })),
          pageSize: fc.integer({ min: 1, max: 9 }),
        });
        let nonEmpty = 0;
        await fc.assert(
          fc.asyncProperty(request, async ({ filters, uidp, orderBy, scopes, pageSize }) => {
            const hierarchy: { descendantsOf?: string; childrenOf?: string; ids?: string[] } = uidp;
            const expected = stored.filter(
              ({ uid, message }) =>
                scopes.some((scope) => isWithin(uid, scope)) &&
                (hierarchy.descendantsOf === undefined || isWithin(parentOf(uid), hierarchy.descendantsOf)) &&
                (hierarchy.childrenOf === undefined || parentOf(uid) === hierarchy.childrenOf) &&
                (hierarchy.ids === undefined || hierarchy.ids.includes(uid)) &&
                matches(message as Advisory, filters),
            );
            nonEmpty += expected.length > 0 ? 1 : 0;
            const found = await all(scopes, { ...filters, uidp, orderBy, pageSize }).catch(noneIfNotFound);
            assert.deepEqual(found, sorted(expected, orderBy));
          }),
          { seed: 31, numRuns: 300 },
        );
        assert.ok(nonEmpty > 100, `only ${nonEmpty} lists were not empty`);
      });
    });
  }
}
