import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { invalid } from '../base/errors.ts';
import {
  GroupsService,
  type ListGroupsRequest,
  type ListGroupsResponse,
  ListGroupsResponseSchema,
} from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { UIDPFilterSchema } from '../contract/gen/platform/common/v1/uidp.platform_pb.js';
import * as v1 from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { methodId } from '../contract/method.ts';
import { type ListStream, type ReadContext, readOperation } from '../resource/operation.ts';
import { adaptList, uidpFilterOf } from './adapt-list.ts';

const { listGroups } = GroupsService.method;
const { Groups } = v1;

type ReadPage = (ctx: ReadContext, request: ListGroupsRequest) => ListGroupsResponse;

/** Runs the v1 list of groups with a filter. v2 returns the pages of `readPage`. */
function list(readPage: ReadPage, filter: { name?: string } = {}): ListStream {
  const operations = adaptList(readOperation(listGroups, readPage), Groups.method.list, listGroups, {
    request: ({ name }) => ({ name }),
    response: ({ groups }) => groups.map(({ uid }) => create(v1.GroupSchema, { id: uid })),
    v1FieldNames: { name: 'title' },
  });
  const operation = operations[methodId(Groups.method.list)];
  if (operation?.mode !== 'stream') assert.fail();
  return operation.run({} as ReadContext, create(v1.GroupFilterSchema, filter));
}

const page = (uids: readonly string[], nextPageToken: string) =>
  create(ListGroupsResponseSchema, { groups: uids.map((uid) => ({ uid })), nextPageToken });

const groupList = (...ids: string[]) => create(v1.GroupListSchema, { items: ids.map((id) => ({ id })) });

test('each page is read when the client takes the next part, up to the last page', async () => {
  const requests: [number, string, string][] = [];
  const pages = list(
    (_ctx, { pageSize, pageToken, name }) => {
      requests.push([pageSize, pageToken, name]);
      const at = Number(pageToken || 0);
      return page([String(at), `${at}b`], at < 2 ? String(at + 1) : '');
    },
    { name: 'n' },
  );
  assert.deepEqual(requests, []);
  assert.deepEqual(await pages.next(), { done: false, value: groupList('0', '0b') });
  assert.deepEqual(requests, [[200, '', 'n']]);
  assert.deepEqual(await pages.next(), { done: false, value: groupList('1', '1b') });
  assert.deepEqual(await pages.next(), { done: true, value: groupList('2', '2b') });
  assert.deepEqual(requests, [
    [200, '', 'n'],
    [200, '1', 'n'],
    [200, '2', 'n'],
  ]);
});

test('an empty list is one empty part', async () => {
  assert.deepEqual(await list(() => page([], '')).next(), { done: true, value: groupList() });
});

test('the event loop runs between two pages', async () => {
  const pages = list(() => page(['a'], 'more'));
  let turns = 0;
  const turn = () => {
    turns++;
    waiting = setImmediate(turn);
  };
  let waiting = setImmediate(turn);
  for (let read = 0; read < 5; read++) await pages.next();
  clearImmediate(waiting);
  assert.ok(turns >= 4, `${turns} turns`);
});

test('violations have the v1 names of fields', async () => {
  const refusing = () => {
    throw invalid('name', 'is too long');
  };
  await assert.rejects(list(refusing).next(), { message: 'Invalid argument: title: is too long' });
});

test('adapting a method whose response is not a list throws', () => {
  const operations = readOperation(listGroups, () => page([], ''));
  assert.throws(
    () => adaptList(operations, Groups.method.create, listGroups, { request: () => ({}), response: () => [] }),
    { message: 'compat: the response of chainguard.platform.iam.Groups/Create is not a list' },
  );
});

test('filters are combined, and match nothing where they exclude each other', () => {
  const filter = (init: object) => create(UIDPFilterSchema, init);
  assert.deepEqual(uidpFilterOf(undefined), filter({}));
  assert.deepEqual(uidpFilterOf(filter({ childrenOf: 'a' }), 'a/b'), filter({ childrenOf: 'a', ids: ['a/b'] }));
  assert.deepEqual(uidpFilterOf(filter({ ids: ['a', 'b'] }), 'b'), filter({ ids: ['b'] }));
  assert.deepEqual(uidpFilterOf(filter({ ids: ['a'] }), 'b'), filter({ ids: ['b'], ancestorsOf: 'b' }));
  assert.deepEqual(uidpFilterOf(undefined, '', 'p'), filter({ childrenOf: 'p' }));
  assert.deepEqual(
    uidpFilterOf(filter({ childrenOf: 'q' }), '', 'p'),
    filter({ childrenOf: 'p', ancestorsOf: 'p', descendantsOf: 'p' }),
  );
});
