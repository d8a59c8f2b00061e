import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { createCaller } from '../../src/access/create-caller.ts';
import { ApiError, Code } from '../../src/base/errors.ts';
import { isWithin, newUid, parentOf, ROOT, type Uid } from '../../src/base/uid.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import {
  type Group,
  GroupSchema,
  ListGroupsRequestSchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import type { Caller } from '../../src/resource/caller.ts';
import { createLister, type ListRequest } from '../../src/resource/list/list.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { insert } from '../../src/resource/write.ts';
import type { Store } from '../../src/store/store.ts';
import { databases, temporaryStore } from '../support/databases.ts';

const method = methodTable(files).find(({ id }) => id.endsWith('GroupsService/ListGroups'));
assert.ok(method);
const LIST = method.capabilities;
const lister = createLister(groups, ListGroupsRequestSchema, createPageTokens(Buffer.alloc(32)));

/** A row of the model that the index must agree with. */
interface ModelRow {
  readonly uid: Uid;
  readonly name: string;
  readonly created: number;
}

const NAMES = ['app', 'Zeta'.toLowerCase(), 'a b', 'a-b', 'a.b', 'a_b', 'abc', 'web 1', 'web 10', 'web 2'];

for (const database of databases) {
  describe(`listing groups on ${database.name}`, () => {
    let store: Store;
    const model: ModelRow[] = [];

    before(async () => {
      store = await temporaryStore(database);
      await store.write(async (tx) => {
        // Each new group is a child of an earlier one, so that the tree is wide and deep.
        for (let i = 0; i < 120; i++) {
          const parent = i % 40 === 0 ? ROOT : (model[Math.floor((i * 7) / 9)]?.uid ?? ROOT);
          const name = `${NAMES[i % NAMES.length]}${i % 3 === 0 ? '' : i}${parent === ROOT ? i : ''}`;
          if (model.some((k) => parentOf(k.uid) === parent && k.name === name)) continue;
          const created = 1_700_000_000_000 + (i % 17);
          const uid = newUid(parent);
          await insert(tx, groups, { message: create(GroupSchema, { name }), uid, parent }, created);
          model.push({ uid, name, created });
        }
      });
    });
    after(() => store.close());

    const callerAt = (...scopes: Uid[]): Caller =>
      createCaller(
        newUid(ROOT),
        undefined,
        scopes.map((group) => ({ group, capabilities: capabilitySetOf(LIST) })),
      );

    const page = (caller: Caller, request: MessageInitShape<typeof ListGroupsRequestSchema>) =>
      lister(
        { method, caller, authorization: undefined, now: 0, db: store.reader },
        create(ListGroupsRequestSchema, request) as unknown as ListRequest,
      );

    async function all(caller: Caller, request: MessageInitShape<typeof ListGroupsRequestSchema>) {
      const found: string[] = [];
      let total: number | undefined;
      let pageToken = '';
      do {
        const { messages, nextPageToken, totalCount } = await page(caller, { ...request, pageToken });
        found.push(...messages.map((message) => (message as Group).uid));
        total ??= totalCount;
        assert.equal(totalCount, total);
        pageToken = nextPageToken;
      } while (pageToken !== '');
      assert.equal(found.length, total, 'totalCount is the number of rows on all pages');
      return found;
    }

    const orders = {
      '': [],
      'uid desc': [['uid', -1]],
      name: [['name', 1]],
      'name desc': [['name', -1]],
      'create_time desc, name': [
        ['created', -1],
        ['name', 1],
      ],
      'name, created_at desc, uid desc': [
        ['name', 1],
        ['created', -1],
        ['uid', -1],
      ],
    } as const satisfies Record<string, readonly (readonly [keyof ModelRow, 1 | -1])[]>;

    function sorted(rows: readonly ModelRow[], order: keyof typeof orders): string[] {
      const terms: (readonly [keyof ModelRow, 1 | -1])[] = [...orders[order]];
      if (!terms.some(([field]) => field === 'uid')) terms.push(['uid', terms[0]?.[1] ?? 1]);
      const compare = (a: ModelRow, b: ModelRow): number => {
        for (const [field, sign] of terms) {
          if (a[field] !== b[field]) return (a[field] < b[field] ? -1 : 1) * sign;
        }
        return 0;
      };
      return [...rows].sort(compare).map(({ uid }) => uid);
    }

    test('agrees with a model for any filter, order, caller and page size', async () => {
      const anyUid = fc.nat(model.length - 1).map((i) => (model[i] as ModelRow).uid);
      const filter = fc.oneof(
        fc.constant({}),
        anyUid.map((descendantsOf) => ({ descendantsOf })),
        anyUid.map((childrenOf) => ({ childrenOf })),
        anyUid.map((ancestorsOf) => ({ ancestorsOf })),
        fc.constant({ inRoot: true }),
        fc.array(anyUid, { minLength: 1, maxLength: 70 }).map((ids) => ({ ids })),
        fc.tuple(anyUid, anyUid).map(([descendantsOf, childrenOf]) => ({ descendantsOf, childrenOf })),
      );
      const order = fc.constantFrom(...(Object.keys(orders) as (keyof typeof orders)[]));
      const name = fc.constantFrom('', ...NAMES);
      const request = fc.record({
        filter,
        order,
        name,
        scopes: fc.array(anyUid, { maxLength: 4 }),
        pageSize: fc.integer({ min: 1, max: 9 }),
      });
      await fc.assert(
        fc.asyncProperty(request, async ({ filter, order, name, scopes, pageSize }) => {
          const hierarchy: {
            descendantsOf?: string;
            childrenOf?: string;
            ancestorsOf?: string;
            inRoot?: boolean;
            ids?: string[];
          } = filter;
          const matches = ({ uid, name: own }: ModelRow) =>
            scopes.some((scope) => isWithin(uid, scope)) &&
            (hierarchy.descendantsOf === undefined ||
              (uid !== hierarchy.descendantsOf && isWithin(uid, hierarchy.descendantsOf))) &&
            (hierarchy.childrenOf === undefined || parentOf(uid) === hierarchy.childrenOf) &&
            (hierarchy.ancestorsOf === undefined ||
              (uid !== hierarchy.ancestorsOf && isWithin(hierarchy.ancestorsOf, uid))) &&
            (hierarchy.inRoot === undefined || parentOf(uid) === ROOT) &&
            (hierarchy.ids === undefined || hierarchy.ids.includes(uid)) &&
            (name === '' || own === name);
          const isVisible = (place: string): boolean =>
            scopes.some((scope) => isWithin(place, scope) || isWithin(scope, place));
          const places = [hierarchy.descendantsOf, hierarchy.childrenOf, hierarchy.ancestorsOf];
          const refusal =
            scopes.length === 0
              ? Code.PERMISSION_DENIED
              : places.every((place) => place === undefined || isVisible(place))
                ? undefined
                : Code.NOT_FOUND;
          const found = await all(callerAt(...scopes), { uidp: filter, orderBy: order, name, pageSize }).catch(
            (error: unknown) => (error instanceof ApiError ? error.code : assert.fail(String(error))),
          );
          assert.deepEqual(found, refusal ?? sorted(model.filter(matches), order));
        }),
        { seed: 11, numRuns: 250 },
      );
    });

    test('skip counts once from the start, and skipped accumulates', async () => {
      const roots = model.filter(({ uid }) => parentOf(uid) === ROOT).map(({ uid }) => uid);
      const caller = callerAt(...roots);
      const expected = sorted(model, 'name');
      const skipped = await page(caller, { orderBy: 'name', pageSize: 5, skip: 30 });
      assert.deepEqual(
        skipped.messages.map((m) => (m as Group).uid),
        expected.slice(30, 35),
      );
      assert.equal(skipped.skipped, 30);
      const { nextPageToken: pageToken } = skipped;
      for (const [skip, start, total] of [
        [30, 35, 30],
        [0, 35, 30],
        [10, 35, 30],
        [45, 50, 45],
      ] as const) {
        const next = await page(caller, { orderBy: 'name', pageSize: 5, skip, pageToken });
        assert.deepEqual(
          next.messages.map((m) => (m as Group).uid),
          expected.slice(start, start + 5),
          `skip ${skip}`,
        );
        assert.equal(next.skipped, total, `skip ${skip}`);
      }
    });

    test('a caller with hundreds of grants gets one merged list', async () => {
      const leaves = model
        .filter(({ uid }) => !model.some((other) => parentOf(other.uid) === uid))
        .map(({ uid }) => uid);
      const missing = Array.from({ length: 400 }, () => newUid(ROOT));
      const found = await all(callerAt(...leaves, ...missing), { orderBy: 'name desc', pageSize: 7 });
      assert.deepEqual(
        found,
        sorted(
          model.filter(({ uid }) => leaves.includes(uid)),
          'name desc',
        ),
      );
    });

    test('a caller without grants is denied', async () => {
      await assert.rejects(all(callerAt(), {}), { code: Code.PERMISSION_DENIED });
    });
  });
}
