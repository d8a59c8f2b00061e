import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type Message } from '@bufbuild/protobuf';
import { anonymousCaller } from '../access/create-caller.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { GetGroupRequestSchema, GroupSchema } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { files, methodTable } from '../contract/method-table.ts';
import type { Caller } from '../resource/caller.ts';
import type { Operation } from '../resource/operation.ts';
import type { Store } from '../store/store.ts';
import type { IncomingCall } from './call.ts';
import { createCallObserver } from './observe.ts';
import { createPipeline } from './pipeline.ts';

const GET_GROUP = 'chainguard.platform.iam.v2.GroupsService/GetGroup';
const method = methodTable(files).find(({ id }) => id === GET_GROUP);
const group = create(GroupSchema, { name: 'team' });
const allowedCaller: Caller = { ...anonymousCaller, can: () => true };

/** A pipeline with one operation, and what it logs and counts. */
function pipelineWith(run: Extract<Operation, { mode: 'read' }>['run'], authenticate: () => Caller | Promise<Caller>) {
  assert.ok(method);
  const observed = { running: 0, codes: [] as string[], errors: [] as unknown[], infos: 0, debugCalls: 0 };
  const log: Log = {
    debug: (fields) => void (typeof fields !== 'function' && observed.debugCalls++),
    info: () => void observed.infos++,
    warn() {},
    error: ({ error }) => void observed.errors.push(error),
  };
  const call = createPipeline({
    operations: { [GET_GROUP]: { mode: 'read', run } },
    store: { reader: {} } as Store,
    authenticate,
    anonymous: anonymousCaller,
    clock: Date.now,
    timeoutMs: 5,
    observer: createCallObserver({
      log,
      metrics: {
        observeRequest: (_method, _wire, code) => void observed.codes.push(code),
        inFlight: { enter: () => void observed.running++, leave: () => void observed.running-- },
      },
    }),
  });
  const incoming = (uid: string): IncomingCall => ({
    method,
    wire: 'grpc',
    authorization: 'Bearer token',
    requestId: 'request-1',
    peer: { address: '', userAgent: '' },
    signal: () => new AbortController().signal,
    read: () => create(GetGroupRequestSchema, { uid }),
  });
  return { observed, get: (uid = 'a'.repeat(40)) => call(incoming(uid)) };
}

const failsWith = (code: Code) => (error: unknown) => error instanceof ApiError && error.code === code;

test('a call whose steps are all synchronous returns no promise', () => {
  const { get, observed } = pipelineWith(
    () => group,
    () => allowedCaller,
  );
  assert.equal(get(), group);
  assert.deepEqual(observed, { running: 0, codes: ['OK'], errors: [], infos: 0, debugCalls: 0 });
});

for (const [what, run, authenticate] of [
  ['a caller', () => group, async () => allowedCaller],
  ['an operation', async () => group, () => allowedCaller],
] as const) {
  test(`${what} may be asynchronous`, async () => {
    const { get, observed } = pipelineWith(run, authenticate);
    const answer = get();
    assert.ok(answer instanceof Promise);
    assert.equal(observed.running, 1);
    assert.equal(await answer, group);
    assert.deepEqual({ running: observed.running, codes: observed.codes }, { running: 0, codes: ['OK'] });
  });
}

for (const [what, run] of [
  [
    'thrown at once',
    (): Message => {
      throw new Error('secret');
    },
  ],
  [
    'thrown later',
    async (): Promise<Message> => {
      throw new Error('secret');
    },
  ],
] as const) {
  test(`an error ${what} is logged and not revealed, and the call ends`, async () => {
    const { get, observed } = pipelineWith(run, () => allowedCaller);
    await assert.rejects(async () => get(), failsWith(Code.INTERNAL));
    assert.match(String(observed.errors), /secret/);
    assert.deepEqual(
      { running: observed.running, codes: observed.codes, infos: observed.infos },
      { running: 0, codes: ['INTERNAL'], infos: 1 },
    );
  });
}

test('a request without a required field and a caller without capabilities are refused', async () => {
  const allowed = pipelineWith(
    () => group,
    () => allowedCaller,
  );
  assert.throws(() => allowed.get(''), failsWith(Code.INVALID_ARGUMENT));
  const anonymous = pipelineWith(
    () => group,
    () => anonymousCaller,
  );
  await assert.rejects(async () => anonymous.get(), failsWith(Code.PERMISSION_DENIED));
});

test('a call that takes too long is given up', async () => {
  const { get, observed } = pipelineWith(
    () => new Promise<Message>(() => {}),
    () => allowedCaller,
  );
  await assert.rejects(async () => get(), failsWith(Code.DEADLINE_EXCEEDED));
  assert.deepEqual({ running: observed.running, codes: observed.codes }, { running: 0, codes: ['DEADLINE_EXCEEDED'] });
});
