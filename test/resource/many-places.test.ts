import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { createCaller } from '../../src/access/caller.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { setOf } from '../../src/contract/capabilities.ts';
import {
  type Advisory,
  AdvisorySchema,
  ListAdvisoriesRequestSchema,
} from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { advisories } from '../../src/domains/vulnerabilities/advisories.ts';
import { createLister, type ListRequest } from '../../src/resource/list/list.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import { insertAll } from '../../src/resource/write.ts';
import type { Reader, Row, Store, Value } from '../../src/store/store.ts';
import { databases, temporaryStore } from '../support/databases.ts';

const method = methodTable(files).find(({ id }) => id.endsWith('AdvisoriesService/ListAdvisories'));
assert.ok(method);
const LIST = method.capabilities;
const lister = createLister(advisories, ListAdvisoriesRequestSchema, createPageTokens(Buffer.alloc(32)));

type Request = MessageInitShape<typeof ListAdvisoriesRequestSchema>;

const PLACES = 300;
const IN_EACH = 3;

/** More places than a page has rows, and than a statement reads from. */
for (const database of databases) {
  describe(`listing for a caller with ${PLACES} separate grants on ${database.name}`, () => {
    let store: Store;
    let known: Advisory[] = [];
    const organization = newUid(ROOT);
    const places = Array.from({ length: PLACES }, () => newUid(organization));
    const statements: string[] = [];
    const callerAt = (scopes: readonly string[]) =>
      createCaller(
        newUid(ROOT),
        undefined,
        scopes.map((group) => ({ group, capabilities: setOf(LIST) })),
      );
    const everywhere = callerAt(places);

    before(async () => {
      store = await temporaryStore(database);
      const drafts = places.flatMap((parent, at) =>
        Array.from({ length: IN_EACH }, (_, i) => {
          const number = ((at * IN_EACH + i) * 7919) % (PLACES * IN_EACH);
          const message = create(AdvisorySchema, {
            advisoryId: `CGA-${String(number).padStart(4, '0')}`,
            artifactName: `app-${number % 4}`,
          });
          return { message, uid: newUid(parent), parent };
        }),
      );
      await store.write((tx) => insertAll(tx, advisories, drafts, 1_700_000_000_000));
      known = drafts.map(({ message, uid }) => ({ ...message, uid }));
    });
    after(() => store.close());

    /** The reader of the store, noting what it is asked. */
    const noting = (): Reader => ({
      ...store.reader,
      all<R extends Row>(sql: string, ...params: Value[]) {
        statements.push(sql);
        return store.reader.all<R>(sql, ...params);
      },
      get<R extends Row>(sql: string, ...params: Value[]) {
        statements.push(sql);
        return store.reader.get<R>(sql, ...params);
      },
    });
    const page = (request: Request, caller = everywhere) =>
      lister(
        { method, caller, authorization: undefined, now: 0, db: noting() },
        create(ListAdvisoriesRequestSchema, request) as unknown as ListRequest,
      );
    const uidsOf = (messages: readonly unknown[]) => messages.map((message) => (message as Advisory).uid);
    const sortedUids = (of: readonly Advisory[]) => of.map(({ uid }) => uid).sort();

    test('visits everything once and in order', async () => {
      for (const [orderBy, pageSize] of [
        ['uid', 60],
        ['uid desc', 200],
        ['create_time', 150],
      ] as const) {
        const found: string[] = [];
        let pageToken = '';
        do {
          const { messages, nextPageToken, totalCount } = await page({ orderBy, pageSize, pageToken });
          assert.equal(totalCount, PLACES * IN_EACH);
          found.push(...uidsOf(messages));
          pageToken = nextPageToken;
        } while (pageToken !== '');
        const expected = sortedUids(known);
        assert.deepEqual(found, orderBy === 'uid desc' ? expected.reverse() : expected);
      }
    });

    test('skips in the middle', async () => {
      const { messages } = await page({ orderBy: 'uid', pageSize: 20, skip: 400 });
      assert.deepEqual(uidsOf(messages), sortedUids(known).slice(400, 420));
    });

    test('a page takes a few statements, whose texts are few too', async () => {
      await page({ orderBy: 'uid', pageSize: 20 });
      statements.length = 0;
      await page({ orderBy: 'uid', pageSize: 20 });
      assert.ok(statements.length <= 12, `${statements.length} statements`);

      statements.length = 0;
      for (let count = 33; count <= 64; count++) await page({ orderBy: 'uid' }, callerAt(places.slice(0, count)));
      // Lists are found by two texts, heads and page by one each; rows by one.
      assert.ok(new Set(statements).size <= 6, `${new Set(statements).size} texts`);
    });

    test('what had to be counted is counted once in a walk, and again for a caller who reaches other places', async () => {
      const counts = () => statements.filter((sql) => sql.includes('count(*)')).length;
      const request: Request = { orderBy: 'uid', pageSize: 50, artifactNames: ['app-1', 'app-2'] };
      const caller = callerAt(places);
      statements.length = 0;
      const first = await page(request, caller);
      const taken = counts();
      assert.ok(taken > 0);
      const second = await page({ ...request, pageToken: first.nextPageToken }, caller);
      assert.equal(counts(), taken);
      assert.equal(second.totalCount, first.totalCount);

      const half = { ...callerAt(places.slice(0, PLACES / 2)), uid: caller.uid };
      const { totalCount } = await page({ ...request, pageToken: first.nextPageToken }, half);
      const visible = known.filter(({ uid, artifactName }) => {
        return half.can(LIST, uid) && ['app-1', 'app-2'].includes(artifactName);
      });
      assert.equal(totalCount, visible.length);
    });
  });
}
