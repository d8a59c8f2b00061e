import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type Message } from '@bufbuild/protobuf';
import { anonymousCaller } from '../access/caller.ts';
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
const anyone: Caller = { ...anonymousCaller, can: () => true };

/** The pipeline around one operation that reads nothing, and what it tells. */
function around(run: Extract<Operation, { mode: 'read' }>['run'], authenticate: () => Caller | Promise<Caller>) {
  assert.ok(method);
  const told = { running: 0, codes: [] as string[], errors: [] as unknown[], infos: 0, looked: 0 };
  const log: Log = {
    debug: (fields) => void (typeof fields !== 'function' && told.looked++),
    info: () => void told.infos++,
    warn() {},
    error: ({ error }) => void told.errors.push(error),
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
        observeRequest: (_method, _wire, code) => void told.codes.push(code),
        inFlight: { enter: () => void told.running++, leave: () => void told.running-- },
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
  return { told, get: (uid = 'a'.repeat(40)) => call(incoming(uid)) };
}

const failsWith = (code: Code) => (error: unknown) => error instanceof ApiError && error.code === code;

test('what is there already is answered at once, without a promise', () => {
  const { get, told } = around(
    () => group,
    () => anyone,
  );
  assert.equal(get(), group);
  assert.deepEqual(told, { running: 0, codes: ['OK'], errors: [], infos: 0, looked: 0 });
});

for (const [what, run, authenticate] of [
  ['a caller', () => group, async () => anyone],
  ['an operation', async () => group, () => anyone],
] as const) {
  test(`${what} may take some time`, async () => {
    const { get, told } = around(run, authenticate);
    const answer = get();
    assert.ok(answer instanceof Promise);
    assert.equal(told.running, 1);
    assert.equal(await answer, group);
    assert.deepEqual({ running: told.running, codes: told.codes }, { running: 0, codes: ['OK'] });
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
  test(`an error ${what} stays inside, is logged, and the call is over`, async () => {
    const { get, told } = around(run, () => anyone);
    await assert.rejects(async () => get(), failsWith(Code.INTERNAL));
    assert.match(String(told.errors), /secret/);
    assert.deepEqual(
      { running: told.running, codes: told.codes, infos: told.infos },
      { running: 0, codes: ['INTERNAL'], infos: 1 },
    );
  });
}

test('a request without its required text is refused, and so is a caller who may not', async () => {
  const allowed = around(
    () => group,
    () => anyone,
  );
  assert.throws(() => allowed.get(''), failsWith(Code.INVALID_ARGUMENT));
  const stranger = around(
    () => group,
    () => anonymousCaller,
  );
  assert.throws(() => stranger.get(), failsWith(Code.PERMISSION_DENIED));
});

test('an answer that takes too long is given up', async () => {
  const { get, told } = around(
    () => new Promise<Message>(() => {}),
    () => anyone,
  );
  await assert.rejects(async () => get(), failsWith(Code.DEADLINE_EXCEEDED));
  assert.deepEqual({ running: told.running, codes: told.codes }, { running: 0, codes: ['DEADLINE_EXCEEDED'] });
});
