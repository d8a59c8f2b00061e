import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError, invalid } from '../base/errors.ts';
import { GroupSchema, GroupsService } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import * as v1 from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { type ReadContext, type WriteContext, writeOperation } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { requireWrite } from './typed-operation.ts';

const { createGroup, deleteGroup } = GroupsService.method;
const { Groups } = v1;
const ctx = {} as ReadContext & WriteContext;

const v2Create = writeOperation(createGroup, {
  prepare: async (_ctx, { parent }) => parent,
  run: (_ctx, { group }, prepared) => create(GroupSchema, { uid: `${prepared}/1`, name: group?.name ?? '' }),
  event: (_ctx, _request, { uid }) => ({
    subject: 'x',
    extensions: {},
    body: { schema: GroupSchema, message: create(GroupSchema, { uid }) },
  }),
});

const v1Create = adapt(v2Create, Groups.method.create, createGroup, {
  request: ({ parent, group }) => ({ parent, group: { name: group?.name ?? '' } }),
  response: ({ uid, name }) => ({ id: uid, name }),
  v1FieldNames: { uid: 'id', name: 'title' },
});

test('requests and responses of a write are mapped, also for prepare', async () => {
  const { prepare, run } = requireWrite(v1Create, Groups.method.create);
  const request = create(v1.CreateGroupRequestSchema, { parent: 'a', group: { name: 'b' } });
  const prepared = await prepare?.(ctx, request);
  assert.deepEqual(await run(ctx, request, prepared), create(v1.GroupSchema, { id: 'a/1', name: 'b' }));
  assert.deepEqual(Object.keys(v1Create), [
    'chainguard.platform.iam.Groups/Create',
    'chainguard.platform.iam.v2.GroupsService/CreateGroup',
  ]);
});

test('the body of an event is mapped to v1, without the fields that v2 removed', async () => {
  const { run, event } = requireWrite(v1Create, Groups.method.create);
  const request = create(v1.CreateGroupRequestSchema, { group: { name: 'secret' } });
  const facts = event?.(ctx, request, await run(ctx, request, 'a'));
  assert.equal(facts?.body?.schema.typeName, 'chainguard.platform.iam.Group');
  assert.deepEqual(facts.body.message, create(v1.GroupSchema, { id: 'a/1' }));
});

test('the body of a delete event is the v1 request', async () => {
  const v2Delete = writeOperation(deleteGroup, {
    run: () => create(deleteGroup.output),
    event: (_ctx, request) => ({
      subject: request.uid,
      extensions: { group: '/' },
      body: { schema: deleteGroup.input, message: request },
    }),
  });
  const v1Delete = adapt(v2Delete, Groups.method.delete, deleteGroup, { request: ({ id }) => ({ uid: id }) });
  const { run, event } = requireWrite(v1Delete, Groups.method.delete);
  const request = create(v1.DeleteGroupRequestSchema, { id: 'a' });
  assert.deepEqual(event?.(ctx, request, await run(ctx, request, undefined)), {
    subject: 'a',
    extensions: { group: '/' },
    body: { schema: v1.DeleteGroupRequestSchema, message: request },
  });
});

test('violations have the v1 names of fields', async () => {
  const v2Refusing = writeOperation(createGroup, {
    run() {
      throw invalid('requests[3].name', 'is required');
    },
  });
  const v1Refusing = adapt(v2Refusing, Groups.method.create, createGroup, {
    request: () => ({}),
    v1FieldNames: { name: 'title', requests: 'groups' },
  });
  const { run } = requireWrite(v1Refusing, Groups.method.create);
  await assert.rejects(
    async () => run(ctx, create(v1.CreateGroupRequestSchema), undefined),
    (error) => error instanceof ApiError && error.message === 'Invalid argument: groups[3].title: is required',
  );
});

test('a v1 write without a field that v2 requires is refused', async () => {
  const v2Delete = writeOperation(deleteGroup, { run: () => create(deleteGroup.output) });
  const v1Delete = adapt(v2Delete, Groups.method.delete, deleteGroup, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames: { uid: 'id' },
  });
  const { run } = requireWrite(v1Delete, Groups.method.delete);
  await assert.rejects(async () => run(ctx, create(v1.DeleteGroupRequestSchema), undefined), {
    message: 'Invalid argument: id: is required',
  });
});

test('adapting a v2 method without an operation throws', () => {
  assert.throws(() => adapt({}, Groups.method.create, createGroup, { request: () => ({}) }), {
    message: 'compat: there is no operation for chainguard.platform.iam.v2.GroupsService/CreateGroup',
  });
});
