import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { create, fromBinary } from '@bufbuild/protobuf';
import { pollUntil as untilRight } from '../../test/support/poll-until.ts';
import { anonymousCaller } from '../access/create-caller.ts';
import { ApiError, Code, invalid } from '../base/errors.ts';
import { createLogger } from '../base/log.ts';
import { type GroupList, GroupListSchema } from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { encodeJson } from '../contract/json/encode.ts';
import { files, methodTable } from '../contract/method-table.ts';
import { createCallObserver } from '../pipeline/observe.ts';
import { createPipeline } from '../pipeline/pipeline.ts';
import type { ListStream } from '../resource/operation.ts';
import type { Store } from '../store/store.ts';
import { createRestHandler } from './rest/handler.ts';
import { callWithTimeout, grpcClient, startServer } from './server.testing.ts';

const LIST = 'chainguard.platform.iam.Groups/List';
const PATH = '/iam/v1/groups';
const NOTHING = new Uint8Array();
/** More than the buffers of two sockets can take. */
const LARGE = 'x'.repeat(1024 * 1024);

const partOf = (...names: string[]): GroupList => create(GroupListSchema, { items: names.map((name) => ({ name })) });

/** The state of a list that is being read. */
interface ReadState {
  /** The number of parts that were read. */
  parts: number;
  isClosed: boolean;
}

/** A list with an unlimited number of parts. */
async function* endless(state: ReadState, name: string): ListStream {
  try {
    for (;;) {
      state.parts++;
      yield partOf(`${name}${state.parts}`);
      await setImmediate();
    }
  } finally {
    state.isClosed = true;
  }
}

/** Starts a server for both wires whose list of groups has these parts. */
async function serve(
  t: TestContext,
  list: () => ListStream,
  { timeoutMs = 60_000, maxListBytes }: { timeoutMs?: number; maxListBytes?: number } = {},
) {
  const methods = methodTable(files);
  const observed: string[] = [];
  const logged: string[] = [];
  const responses: ServerResponse[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line) => logged.push(line) } });
  const call = createPipeline({
    operations: { [LIST]: { mode: 'stream', run: list } },
    store: { reader: {} } as Store,
    authenticate: () => anonymousCaller,
    anonymous: anonymousCaller,
    clock: Date.now,
    timeoutMs,
    observer: createCallObserver({
      log,
      metrics: {
        observeRequest: (_method, wire, code) => observed.push(`${wire} ${code}`),
        inFlight: { enter() {}, leave() {} },
      },
    }),
  });
  const rest = createRestHandler({
    methods,
    call,
    serviceDomain: 'wharfinger.dev',
    newRequestId: () => 'new-id',
    cors: [],
    log,
  });
  const { port, address } = await startServer(t, {
    call,
    http(req, res) {
      responses.push(res);
      rest(req, res);
    },
    ...(maxListBytes && { maxListBytes }),
  });
  return {
    ...{ observed, logged, responses, address },
    fetch: () => fetch(`http://127.0.0.1:${port}${PATH}`),
    /** A response whose body is not read yet. */
    async begin(): Promise<IncomingMessage> {
      const request = get({ port, host: '127.0.0.1', path: PATH, agent: false });
      request.on('error', () => {});
      t.after(() => request.destroy());
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return response;
    },
  };
}

const until = (condition: () => boolean): Promise<boolean> => untilRight(async () => condition(), Boolean);

async function* fourParts(): ListStream {
  yield partOf('a', 'b');
  yield partOf();
  yield partOf('c');
  return partOf('d');
}

test('over REST, the parts are sent as one JSON text', async (t) => {
  const { fetch, observed } = await serve(t, fourParts);
  const response = await fetch();
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('x-request-id'), 'new-id');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-length'), null);
  assert.equal(await response.text(), encodeJson(GroupListSchema, partOf('a', 'b', 'c', 'd'), 'v1'));
  assert.deepEqual(observed, ['rest OK']);
});

test('over gRPC, the parts are sent as one message', async (t) => {
  const { address, observed } = await serve(t, fourParts);
  const { response } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.deepEqual(fromBinary(GroupListSchema, response ?? assert.fail()), partOf('a', 'b', 'c', 'd'));
  assert.deepEqual(observed, ['grpc OK']);
});

test('a list of one part has a content-length, like any other response', async (t) => {
  const responses = [partOf('a'), partOf()];
  const expected = responses.map((response) => encodeJson(GroupListSchema, response, 'v1'));
  // biome-ignore lint/correctness/useYield: the only part is the returned one.
  const { fetch } = await serve(t, async function* () {
    return responses.shift() ?? assert.fail();
  });
  for (const json of expected) {
    const response = await fetch();
    assert.equal(await response.text(), json);
    assert.equal(response.headers.get('content-length'), String(json.length));
  }
});

test('the list is not read further while the client does not read the response', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { begin, responses } = await serve(t, () => endless(state, LARGE));
  const response = await begin();
  const [sending = assert.fail()] = responses;
  await until(() => sending.writableNeedDrain);
  // Each turn would be enough for a part. The parts that were read are in the buffers of the sockets, some megabytes.
  for (let turn = 0; turn < 500; turn++) await setImmediate();
  const buffered = state.parts;
  assert.ok(buffered < 50, `${buffered} parts`);

  response.resume();
  await until(() => state.parts > buffered + 20);
  response.destroy();
  await until(() => state.isClosed);
});

test('a client that disconnects ends the reading', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { begin, observed, logged } = await serve(t, () => endless(state, LARGE));
  const response = await begin();
  await once(response, 'data');
  response.destroy();
  await until(() => state.isClosed && observed.length > 0);
  assert.deepEqual(observed, ['rest CANCELLED']);
  assert.deepEqual(
    logged.map((line) => JSON.parse(line).code),
    ['CANCELLED'],
  );
});

test('a client that does not read the response is disconnected at the deadline', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { begin, observed } = await serve(t, () => endless(state, LARGE), { timeoutMs: 1_000 });
  const response = await begin();
  await until(() => observed.length > 0);
  assert.deepEqual(observed, ['rest DEADLINE_EXCEEDED']);
  assert.ok(state.isClosed);
  await assert.rejects(text(response));
});

test('a list that fails after its first part is cut off, and the error is logged', async (t) => {
  const { begin, observed, logged } = await serve(t, async function* () {
    yield partOf('a');
    yield partOf('b');
    await setImmediate();
    throw new Error('the disk failed');
  });
  const response = await begin();
  assert.equal(response.statusCode, 200);
  let received = '';
  response.setEncoding('utf8').on('data', (part) => (received += part));
  await assert.rejects(once(response, 'end'), { code: 'ECONNRESET' });
  assert.throws(() => JSON.parse(received));
  assert.deepEqual(observed, ['rest INTERNAL']);
  const lines = logged.map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ message, requestId }) => [message, requestId]),
    [
      ['call failed', 'new-id'],
      ['call', 'new-id'],
      ['response cut off', 'new-id'],
    ],
  );
  assert.match(JSON.stringify(lines[0]), /the disk failed/);
});

test('a list that fails before its first part has a status', async (t) => {
  // biome-ignore lint/correctness/useYield: it throws before the first part.
  const { fetch, address } = await serve(t, async function* () {
    throw invalid('name', 'is too long');
  });
  const response = await fetch();
  assert.equal(response.status, 400);
  assert.equal(((await response.json()) as { message: string }).message, 'Invalid argument: name: is too long');
  const { error } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.equal(error?.code, Code.INVALID_ARGUMENT);
});

test('over gRPC, a list that fails after its first part is an error', async (t) => {
  const { address } = await serve(t, async function* () {
    yield partOf('a');
    throw new ApiError(Code.UNAVAILABLE, 'Unavailable: the database cannot be reached');
  });
  const { error, response } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.deepEqual([error?.code, response], [Code.UNAVAILABLE, undefined]);
});

test('over gRPC, a list that exceeds the limit is refused as soon as it does', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { address, observed } = await serve(t, () => endless(state, LARGE), { maxListBytes: 3 * 1024 * 1024 });
  const { error } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.equal(error?.code, Code.RESOURCE_EXHAUSTED);
  assert.match(error.details, /exceeds 3 MiB.*REST/);
  assert.deepEqual([state.parts, state.isClosed, observed], [3, true, ['grpc RESOURCE_EXHAUSTED']]);
});

test('over gRPC, a client that disconnects ends the reading', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { address, observed } = await serve(t, () => endless(state, 'short'));
  const { client } = grpcClient(t, address);
  const unchanged = (bytes: Buffer): Buffer => bytes;
  const call = client.makeUnaryRequest(`/${LIST}`, unchanged, unchanged, Buffer.alloc(0), () => {});
  await until(() => state.parts > 3);
  call.cancel();
  await until(() => state.isClosed && observed.length > 0);
  assert.deepEqual(observed, ['grpc CANCELLED']);
});

test('over gRPC, the deadline of a client ends the reading', async (t) => {
  const state: ReadState = { parts: 0, isClosed: false };
  const { address, observed } = await serve(t, () => endless(state, 'short'));
  assert.equal(await callWithTimeout(t, address, `/${LIST}`, 300), Code.DEADLINE_EXCEEDED);
  assert.ok(state.parts > 0, 'the call has reached the handler');
  await until(() => state.isClosed && observed.length > 0);
  assert.equal(observed.length, 1);
});
