import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { invalid } from '../base/errors.ts';
import {
  GroupsService,
  type ListGroupsRequest,
  ListGroupsResponseSchema,
} from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { UIDPFilterSchema } from '../contract/gen/platform/common/v1/uidp.platform_pb.js';
import * as v1 from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import type { ListStream, Operation, ReadContext } from '../resource/operation.ts';
import { idOf } from './adapt.ts';
import { listAll, within } from './list-all.ts';

const { listGroups } = GroupsService.method;
const { Groups } = v1;

type ReadPage = Extract<Operation, { mode: 'read' }>['run'];

/** Runs the v1 list of groups with a filter, where v2 has these pages. */
function list(run: ReadPage, filter: { name?: string } = {}): ListStream {
  const operations = listAll({ [idOf(listGroups)]: { mode: 'read', run } }, Groups.method.list, listGroups, {
    request: ({ name }) => ({ name }),
    response: ({ groups }) => groups.map(({ uid }) => create(v1.GroupSchema, { id: uid })),
    fields: { name: 'title' },
  });
  const operation = operations[idOf(Groups.method.list)];
  assert.equal(operation?.mode, 'stream');
  return (operation as Extract<Operation, { mode: 'stream' }>).run(
    {} as ReadContext,
    create(v1.GroupFilterSchema, filter),
  );
}

const page = (uids: readonly string[], nextPageToken: string) =>
  create(ListGroupsResponseSchema, { groups: uids.map((uid) => ({ uid })), nextPageToken });

const groupList = (...ids: string[]) => create(v1.GroupListSchema, { items: ids.map((id) => ({ id })) });

test('a list walks the pages to their end, each when it is asked for', async () => {
  const asked: [number, string, string][] = [];
  const pages = list(
    (_ctx, request) => {
      const { pageSize, pageToken, name } = request as ListGroupsRequest;
      asked.push([pageSize, pageToken, name]);
      const at = Number(pageToken || 0);
      return page([String(at), `${at}b`], at < 2 ? String(at + 1) : '');
    },
    { name: 'n' },
  );
  assert.deepEqual(asked, []);
  assert.deepEqual(await pages.next(), { done: false, value: groupList('0', '0b') });
  assert.deepEqual(asked, [[200, '', 'n']]);
  assert.deepEqual(await pages.next(), { done: false, value: groupList('1', '1b') });
  assert.deepEqual(await pages.next(), { done: true, value: groupList('2', '2b') });
  assert.deepEqual(asked, [
    [200, '', 'n'],
    [200, '1', 'n'],
    [200, '2', 'n'],
  ]);
});

test('an empty list is one empty page', async () => {
  assert.deepEqual(await list(() => page([], '')).next(), { done: true, value: groupList() });
});

test('other work gets its turn between two pages', async () => {
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

test('complaints name fields as v1 does', async () => {
  const refusing = () => {
    throw invalid('name', 'is too long');
  };
  await assert.rejects(list(refusing).next(), { message: 'Invalid argument: title: is too long' });
});

test('an answer with more than a list in it stops the start', () => {
  const operations = { [idOf(listGroups)]: { mode: 'read' as const, run: () => page([], '') } };
  assert.throws(
    () => listAll(operations, Groups.method.create, listGroups, { request: () => ({}), response: () => [] }),
    { message: 'compat: chainguard.platform.iam.Groups/Create is no list' },
  );
});

test('filters add up, and leave nothing where they exclude each other', () => {
  const filter = (init: object) => create(UIDPFilterSchema, init);
  assert.deepEqual(within(undefined), filter({}));
  assert.deepEqual(within(filter({ childrenOf: 'a' }), 'a/b'), filter({ childrenOf: 'a', ids: ['a/b'] }));
  assert.deepEqual(within(filter({ ids: ['a', 'b'] }), 'b'), filter({ ids: ['b'] }));
  assert.deepEqual(within(filter({ ids: ['a'] }), 'b'), filter({ ids: ['b'], ancestorsOf: 'b' }));
  assert.deepEqual(within(undefined, '', 'p'), filter({ childrenOf: 'p' }));
  assert.deepEqual(
    within(filter({ childrenOf: 'q' }), '', 'p'),
    filter({ childrenOf: 'p', ancestorsOf: 'p', descendantsOf: 'p' }),
  );
});
