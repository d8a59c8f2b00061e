import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ListGroupsResponseSchema } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { type GroupList, GroupListSchema, GroupSchema } from './gen/platform/iam/v1/group.platform_pb.js';
import { encodeJson } from './json/encode.ts';
import { soleListField, streamListJson } from './streamed-list.ts';

const list = soleListField(GroupListSchema) ?? assert.fail();
const listOf = (...names: string[]): GroupList =>
  create(GroupListSchema, { items: names.map((name) => ({ name, description: ']},{"items":[' })) });

const joined = async (...parts: GroupList[]): Promise<string> => {
  const json = streamListJson(GroupListSchema, list, 'v1');
  const last = parts.pop() ?? assert.fail();
  let text = '';
  for (const part of parts) text += await json.next(part);
  return text + (await json.end(last));
};

test('the pieces of JSON are together the JSON of the whole message', async () => {
  const whole = encodeJson(GroupListSchema, listOf('a', 'b', 'c', 'd'), 'v1');
  assert.equal(await joined(listOf('a', 'b'), listOf('c'), listOf('d')), whole);
  assert.equal(await joined(listOf('a', 'b', 'c', 'd')), whole);
});

test('a long part is the same in slices', async () => {
  const names = Array.from({ length: 3000 }, (_, at) => `name ${at} é`);
  const whole = encodeJson(GroupListSchema, listOf(...names), 'v1');
  assert.equal(await joined(listOf(...names.slice(0, 1500)), listOf(...names.slice(1500))), whole);
});

test('parts may be empty', async () => {
  const whole = encodeJson(GroupListSchema, listOf('a', 'b'), 'v1');
  assert.equal(await joined(listOf(), listOf('a'), listOf(), listOf('b'), listOf()), whole);
  assert.deepEqual(JSON.parse(await joined(listOf(), listOf())), { items: [] });
});

test('the concatenated encodings of the parts are the encoding of the whole message', () => {
  const parts = [listOf('a', 'b'), listOf(), listOf('c')].map((part) => toBinary(GroupListSchema, part));
  assert.deepEqual(fromBinary(GroupListSchema, Buffer.concat(parts)), listOf('a', 'b', 'c'));
});

test('only a message whose only field is a list can be sent in parts', () => {
  assert.equal(list.name, 'items');
  assert.equal(soleListField(ListGroupsResponseSchema), undefined);
  assert.equal(soleListField(GroupSchema), undefined);
});
