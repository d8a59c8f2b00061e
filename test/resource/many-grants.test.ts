import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { createCaller } from '../../src/access/create-caller.ts';
import { newUid, parseUid, ROOT, type Uid } from '../../src/base/uid.ts';
import { capabilitySetOf } from '../../src/contract/capabilities.ts';
import {
  type Advisory,
  AdvisorySchema,
  ListAdvisoriesRequestSchema,
} from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { advisories } from '../../src/domains/advisories/advisories.ts';
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

const GRANTS = 300;
const PER_GROUP = 3;

/** More grants than a page has rows, and more than one statement has scans. */
for (const database of databases) {
  describe(`listing for a caller with ${GRANTS} separate grants on ${database.name}`, () => {
    let store: Store;
    let stored: Advisory[] = [];
    const organization = newUid(ROOT);
    const granted = Array.from({ length: GRANTS }, () => newUid(organization));
    const statements: string[] = [];
    const callerAt = (scopes: readonly Uid[]) =>
      createCaller(
        newUid(ROOT),
        undefined,
        scopes.map((group) => ({ group, capabilities: capabilitySetOf(LIST) })),
      );
    const callerWithAll = callerAt(granted);

    before(async () => {
      store = await temporaryStore(database);
      const drafts = granted.flatMap((parent, at) =>
        Array.from({ length: PER_GROUP }, (_, i) => {
          const number = ((at * PER_GROUP + i) * 7919) % (GRANTS * PER_GROUP);
          const message = create(AdvisorySchema, {
            advisoryId: `CGA-${String(number).padStart(4, '0')}`,
            artifactName: `app-${number % 4}`,
          });
          return { message, uid: newUid(parent), parent };
        }),
      );
      await store.write((tx) => insertAll(tx, advisories, drafts, 1_700_000_000_000));
      stored = drafts.map(({ message, uid }) => ({ ...message, uid }));
    });
    after(() => store.close());

    /** The reader of the store, which records its statements. */
    const recordingReader = (): Reader => ({
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
    const page = (request: Request, caller = callerWithAll) =>
      lister(
        { method, caller, authorization: undefined, now: 0, db: recordingReader() },
        create(ListAdvisoriesRequestSchema, request) as unknown as ListRequest,
      );
    const uidsOf = (messages: readonly unknown[]) => messages.map((message) => (message as Advisory).uid);
    const sortedUids = (of: readonly Advisory[]) => of.map(({ uid }) => uid).sort();

    test('returns each row once and in order', async () => {
      for (const [orderBy, pageSize] of [
        ['uid', 60],
        ['uid desc', 200],
        ['create_time', 150],
      ] as const) {
        const found: string[] = [];
        let pageToken = '';
        do {
          const { messages, nextPageToken, totalCount } = await page({ orderBy, pageSize, pageToken });
          assert.equal(totalCount, GRANTS * PER_GROUP);
          found.push(...uidsOf(messages));
          pageToken = nextPageToken;
        } while (pageToken !== '');
        const expected = sortedUids(stored);
        assert.deepEqual(found, orderBy === 'uid desc' ? expected.reverse() : expected);
      }
    });

    test('skips rows', async () => {
      const { messages } = await page({ orderBy: 'uid', pageSize: 20, skip: 400 });
      assert.deepEqual(uidsOf(messages), sortedUids(stored).slice(400, 420));
    });

    test('a page takes few statements, with few different texts', async () => {
      await page({ orderBy: 'uid', pageSize: 20 });
      statements.length = 0;
      await page({ orderBy: 'uid', pageSize: 20 });
      assert.ok(statements.length <= 12, `${statements.length} statements`);

      statements.length = 0;
      for (let count = 33; count <= 64; count++) await page({ orderBy: 'uid' }, callerAt(granted.slice(0, count)));
      // Two texts find lists; one each reads the first rows, the page and the messages.
      assert.ok(new Set(statements).size <= 6, `${new Set(statements).size} texts`);
    });

    test('rows are counted for the first page only, and again if the reach of the caller has changed', async () => {
      const counts = () => statements.filter((sql) => sql.includes('count(*)')).length;
      const request: Request = { orderBy: 'uid', pageSize: 50, artifactNames: ['app-1', 'app-2'] };
      const caller = callerAt(granted);
      statements.length = 0;
      const first = await page(request, caller);
      const afterFirst = counts();
      assert.ok(afterFirst > 0);
      const second = await page({ ...request, pageToken: first.nextPageToken }, caller);
      assert.equal(counts(), afterFirst);
      assert.equal(second.totalCount, first.totalCount);

      const half = { ...callerAt(granted.slice(0, GRANTS / 2)), uid: caller.uid };
      const { totalCount } = await page({ ...request, pageToken: first.nextPageToken }, half);
      const visible = stored.filter(({ uid, artifactName }) => {
        return half.can(LIST, parseUid('uid', uid)) && ['app-1', 'app-2'].includes(artifactName);
      });
      assert.equal(totalCount, visible.length);
    });
  });
}
