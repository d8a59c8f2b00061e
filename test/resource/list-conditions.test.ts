import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { createCaller } from '../../src/access/create-caller.ts';
import { ApiError, Code } from '../../src/base/errors.ts';
import { isWithin, newUid, parentOf, ROOT, type Uid } from '../../src/base/uid.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import {
  ListTagsRequestSchema,
  type Tag,
  TagSchema,
} from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { tags } from '../../src/domains/registry/tags/tags.ts';
import { defineResource, type Resource } from '../../src/resource/definition.ts';
import { createLister, type ListRequest } from '../../src/resource/list/list.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { insert } from '../../src/resource/write.ts';
import type { Store } from '../../src/store/store.ts';
import { databases, temporaryStore } from '../support/databases.ts';

const method = methodTable(files).find(({ id }) => id.endsWith('TagsService/ListTags'));
assert.ok(method);
const LIST = method.capabilities;

/** A row of the model that the index must agree with. */
interface ModelRow {
  readonly uid: Uid;
  readonly name: string;
  readonly digest: string;
  readonly updated: number;
}

type Request = MessageInitShape<typeof ListTagsRequestSchema>;

const NAMES = ['latest', '1.2', '1.2-r3', '1.2-20260801', 'sha256-ab', 'edge', '1.3-r0', 'edge-202608011230'];
const DIGESTS = ['sha256:a', 'sha256:b', 'sha256:c'];
const START = 1_700_000_000_000;
const HIDDEN = tags.hidden as NonNullable<typeof tags.hidden>;

/** The same rows under declarations for which the engine chooses different access paths. */
const variants: readonly { readonly name: string; readonly resource: Resource<typeof TagSchema> }[] = [
  { name: 'tags, whose digest is a reference', resource: tags },
  {
    name: 'a kind with a facet',
    resource: defineResource({
      ...tags,
      kind: 'faceted',
      references: {},
      facets: { digest: ({ digest }) => [digest] },
    }),
  },
  {
    name: 'a kind that nests and is a scope',
    resource: defineResource({ ...tags, kind: 'nested', parents: ['group', ROOT], isScope: true }),
  },
  {
    name: 'a kind that hides nothing',
    resource: defineResource({
      ...tags,
      kind: 'plain',
      parents: ['group'],
      hidden: Object.fromEntries(Object.keys(HIDDEN).map((flag) => [flag, () => false])),
    }),
  },
];

/** Treats a refused place as an empty list: this model has no groups. test/resource/list.test.ts tests what is refused. */
const noneIfNotFound = (error: unknown): string[] =>
  error instanceof ApiError && error.code === Code.NOT_FOUND ? [] : assert.fail(String(error));

for (const database of databases) {
  for (const { name: variant, resource } of variants) {
    describe(`listing ${variant} on ${database.name}`, () => {
      let store: Store;
      const model: ModelRow[] = [];
      const parents: Uid[] = [];
      const lister = createLister(resource, ListTagsRequestSchema, createPageTokens(Buffer.alloc(32)));

      before(async () => {
        store = await temporaryStore(database);
        const org = newUid(ROOT);
        const team = newUid(org);
        const repoUids = [newUid(team), newUid(team), newUid(org)];
        parents.push(org, team, ...repoUids);
        await store.write(async (tx) => {
          for (const [i, uid] of repoUids.entries()) {
            await insert(tx, repos, { message: create(RepoSchema, { name: `${i}` }), uid, parent: org }, START);
          }
          for (let i = 0; i < 90; i++) {
            const candidates = resource.nests ? [...parents, ...model.slice(0, 7).map(({ uid }) => uid)] : repoUids;
            const parent = candidates[i % candidates.length] ?? org;
            const [name, digest] = [NAMES[(i * 5) % NAMES.length] ?? '', DIGESTS[i % 11] ?? `sha256:${i}`];
            const [uid, updated] = [newUid(parent), START + (i % 23)];
            await insert(tx, resource, { message: create(TagSchema, { name, digest }), uid, parent }, updated);
            model.push({ uid, name, digest, updated });
          }
        });
      });
      after(() => store.close());

      async function all(scopes: readonly Uid[], request: Request): Promise<string[]> {
        const grants = scopes.map((group) => ({ group, capabilities: capabilitySetOf(LIST) }));
        const caller = createCaller(newUid(ROOT), undefined, grants);
        const ctx = { method: method as NonNullable<typeof method>, caller, authorization: undefined, now: 0 };
        const found: string[] = [];
        let pageToken = '';
        do {
          const message = create(ListTagsRequestSchema, { ...request, pageToken }) as unknown as ListRequest;
          const { messages, nextPageToken, totalCount } = await lister({ ...ctx, db: store.reader }, message);
          found.push(...messages.map((one) => (one as Tag).uid));
          pageToken = nextPageToken;
          if (pageToken === '') assert.equal(totalCount, found.length, 'totalCount is the number of rows on all pages');
        } while (pageToken !== '');
        return found;
      }

      const ORDERS = { '': ['uid', 1], 'uid desc': ['uid', -1], name: ['name', 1], 'name desc': ['name', -1] } as const;
      const TIMES = { update_time: ['updated', 1], 'updated_at desc': ['updated', -1] } as const;
      const orders = { ...ORDERS, ...TIMES };

      function sorted(rows: readonly ModelRow[], order: keyof typeof orders): string[] {
        const [field, sign] = orders[order];
        const compare = (a: string | number, b: string | number) => (a === b ? 0 : a < b ? -sign : sign);
        return [...rows].sort((a, b) => compare(a[field], b[field]) || compare(a.uid, b.uid)).map(({ uid }) => uid);
      }

      const isHidden = ({ name }: ModelRow, included: ReadonlySet<string>): boolean => {
        const flag = Object.keys(HIDDEN).find((each) => HIDDEN[each]?.(create(TagSchema, { name })));
        return resource.kind !== 'plain' && flag !== undefined && !included.has(flag);
      };

      test('agrees with a model for any conditions, order, caller and page size', async () => {
        const anyUid = fc.nat(89).map((i) => model[i]?.uid ?? '');
        const parent = fc.oneof(fc.constantFrom(...parents), anyUid);
        const uidp = fc.oneof(
          fc.constant({}),
          parent.map((descendantsOf) => ({ descendantsOf })),
          parent.map((childrenOf) => ({ childrenOf })),
          fc.array(anyUid, { minLength: 1, maxLength: 40 }).map((ids) => ({ ids })),
        );
        const request = fc.record({
          uidp,
          order: fc.constantFrom(...(Object.keys(orders) as (keyof typeof orders)[])),
          name: fc.constantFrom('', '', ...NAMES),
          digest: fc.constantFrom('', '', ...DIGESTS, 'sha256:17'),
          since: fc.option(fc.integer({ min: -1, max: 24 }), { nil: undefined }),
          includeReferrers: fc.boolean(),
          includeDates: fc.boolean(),
          includeEpochs: fc.boolean(),
          scopes: fc.array(fc.constantFrom(...parents), { minLength: 1, maxLength: 3 }),
          pageSize: fc.integer({ min: 1, max: 9 }),
        });
        await fc.assert(
          fc.asyncProperty(request, async ({ uidp, order, name, digest, since, scopes, pageSize, ...flags }) => {
            const hierarchy: { descendantsOf?: string; childrenOf?: string; ids?: string[] } = uidp;
            const included = new Set([
              ...(flags.includeReferrers ? ['include_referrers'] : []),
              ...(flags.includeDates ? ['include_dates'] : []),
              ...(flags.includeEpochs ? ['include_epochs'] : []),
            ]);
            const matches = (row: ModelRow): boolean =>
              scopes.some((scope) => isWithin(row.uid, scope)) &&
              (hierarchy.descendantsOf === undefined || isWithin(parentOf(row.uid), hierarchy.descendantsOf)) &&
              (hierarchy.childrenOf === undefined || parentOf(row.uid) === hierarchy.childrenOf) &&
              (hierarchy.ids === undefined || hierarchy.ids.includes(row.uid)) &&
              (name === '' || row.name === name) &&
              (digest === '' || row.digest === digest) &&
              (since === undefined || row.updated >= START + since) &&
              !isHidden(row, included);
            const updatedSince = since === undefined ? {} : { updatedSince: timestampFromMs(START + since) };
            const request = { uidp, orderBy: order, name, digest, pageSize, ...flags, ...updatedSince };
            assert.deepEqual(await all(scopes, request).catch(noneIfNotFound), sorted(model.filter(matches), order));
          }),
          { seed: 23, numRuns: 250 },
        );
      });
    });
  }
}
