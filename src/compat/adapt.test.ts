import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type Message } from '@bufbuild/protobuf';
import { ApiError, invalid } from '../base/errors.ts';
import {
  type CreateGroupRequest,
  type DeleteGroupRequest,
  GroupSchema,
  GroupsService,
} from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import * as v1 from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import type { Operation, Operations, ReadContext, WriteContext } from '../resource/operation.ts';
import { adapt, idOf } from './adapt.ts';

const { createGroup, deleteGroup } = GroupsService.method;
const { Groups } = v1;
const ctx = {} as ReadContext & WriteContext;

const only = (operations: Operations): Operation => Object.values(operations)[0] ?? assert.fail();

function written(operations: Operations) {
  const operation = only(operations);
  assert.equal(operation.mode, 'write');
  return operation as Extract<Operation, { mode: 'write' }>;
}

/** Creates groups as v2 would, as far as a test can see. */
const creating: Operation = {
  mode: 'write',
  prepare: async (_ctx, request) => (request as CreateGroupRequest).parent,
  run: (_ctx, request, prepared) =>
    create(GroupSchema, { uid: `${prepared}/1`, name: (request as CreateGroupRequest).group?.name ?? '' }),
  event: (_ctx, _request, response) => ({
    subject: 'x',
    extensions: {},
    body: { schema: GroupSchema, message: create(GroupSchema, { uid: (response as unknown as { uid: string }).uid }) },
  }),
};

const creation = adapt({ [idOf(createGroup)]: creating }, Groups.method.create, createGroup, {
  request: ({ parent, group }) => ({ parent, group: { name: group?.name ?? '' } }),
  response: ({ uid, name }) => ({ id: uid, name }),
  fields: { uid: 'id', name: 'title' },
});

test('a write is prepared, run and answered in the words of v1', async () => {
  const { prepare, run } = written(creation);
  const request = create(v1.CreateGroupRequestSchema, { parent: 'a', group: { name: 'b' } });
  const prepared = await prepare?.(ctx, request);
  assert.deepEqual(await run(ctx, request, prepared), create(v1.GroupSchema, { id: 'a/1', name: 'b' }));
  assert.deepEqual(Object.keys(creation), ['chainguard.platform.iam.Groups/Create']);
});

test('its event has a body of v1, and what v2 leaves out of it stays out', async () => {
  const { run, event } = written(creation);
  const request = create(v1.CreateGroupRequestSchema, { group: { name: 'secret' } });
  const facts = event?.(ctx, request, await run(ctx, request, 'a'));
  assert.equal(facts?.body?.schema.typeName, 'chainguard.platform.iam.Group');
  assert.deepEqual(facts.body.message, create(v1.GroupSchema, { id: 'a/1' }));
});

test('the event of a deletion has the request of v1 as its body', async () => {
  const deleting: Operation = {
    mode: 'write',
    run: () => create(GroupSchema) as Message,
    event: (_ctx, request) => ({
      subject: (request as DeleteGroupRequest).uid,
      extensions: { group: '/' },
      body: { schema: deleteGroup.input, message: request },
    }),
  };
  const { run, event } = written(
    adapt({ [idOf(deleteGroup)]: deleting }, Groups.method.delete, deleteGroup, {
      request: ({ id }) => ({ uid: id }),
    }),
  );
  const request = create(v1.DeleteGroupRequestSchema, { id: 'a' });
  assert.deepEqual(event?.(ctx, request, await run(ctx, request, undefined)), {
    subject: 'a',
    extensions: { group: '/' },
    body: { schema: v1.DeleteGroupRequestSchema, message: request },
  });
});

test('complaints name fields as v1 does', async () => {
  const refusing: Operation = {
    mode: 'write',
    run() {
      throw invalid('requests[3].name', 'is required');
    },
  };
  const { run } = written(
    adapt({ [idOf(createGroup)]: refusing }, Groups.method.create, createGroup, {
      request: () => ({}),
      fields: { name: 'title', requests: 'groups' },
    }),
  );
  await assert.rejects(
    async () => run(ctx, create(v1.CreateGroupRequestSchema), undefined),
    (error) => error instanceof ApiError && error.message === 'Invalid argument: groups[3].title: is required',
  );
});

test('what v2 requires, v1 must say', async () => {
  const { run } = written(
    adapt({ [idOf(deleteGroup)]: creating }, Groups.method.delete, deleteGroup, {
      request: ({ id }) => ({ uid: id }),
      fields: { uid: 'id' },
    }),
  );
  await assert.rejects(async () => run(ctx, create(v1.DeleteGroupRequestSchema), undefined), {
    message: 'Invalid argument: id: is required',
  });
});

test('a method that v2 does not have stops the start', () => {
  assert.throws(() => adapt({}, Groups.method.create, createGroup, { request: () => ({}) }), {
    message: 'compat: there is no operation for chainguard.platform.iam.v2.GroupsService/CreateGroup',
  });
});
