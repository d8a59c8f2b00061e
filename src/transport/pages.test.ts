import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { create, fromBinary } from '@bufbuild/protobuf';
import { until as untilRight } from '../../test/support/eventually.ts';
import { anonymousCaller } from '../access/caller.ts';
import { ApiError, Code, invalid } from '../base/errors.ts';
import { createLogger } from '../base/log.ts';
import { type GroupList, GroupListSchema } from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { encodeJson } from '../contract/json/encode.ts';
import { files, methodTable } from '../contract/method-table.ts';
import { createPipeline } from '../pipeline/pipeline.ts';
import type { ListStream } from '../resource/operation.ts';
import type { Store } from '../store/store.ts';
import { createRest } from './rest/handler.ts';
import { grpcClient, startServer } from './server.testing.ts';

const LIST = 'chainguard.platform.iam.Groups/List';
const PATH = '/iam/v1/groups';
const NOTHING = new Uint8Array();
/** More than two sockets hold. */
const LARGE = 'x'.repeat(1024 * 1024);

const pageOf = (...names: string[]): GroupList => create(GroupListSchema, { items: names.map((name) => ({ name })) });

/** How far a list came, and whether it was closed. */
interface Course {
  read: number;
  ended: boolean;
}

/** A list without an end. */
async function* endless(course: Course, name: string): ListStream {
  try {
    for (;;) {
      course.read++;
      yield pageOf(`${name}${course.read}`);
      await setImmediate();
    }
  } finally {
    course.ended = true;
  }
}

/** A server over both wires whose list of groups has these pages. */
async function serve(
  t: TestContext,
  pages: () => ListStream,
  { timeoutMs = 60_000, maxListBytes }: { timeoutMs?: number; maxListBytes?: number } = {},
) {
  const methods = methodTable(files);
  const observed: string[] = [];
  const logged: string[] = [];
  const responses: ServerResponse[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line) => logged.push(line) } });
  const call = createPipeline({
    operations: { [LIST]: { mode: 'stream', run: pages } },
    store: { reader: {} } as Store,
    authenticate: () => anonymousCaller,
    anonymous: anonymousCaller,
    clock: Date.now,
    timeoutMs,
    log,
    metrics: {
      observeRequest: (_method, wire, code) => observed.push(`${wire} ${code}`),
      inFlight: { enter() {}, leave() {} },
    },
  });
  const rest = createRest({
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
    /** An answer of which nothing is read yet. */
    async begin(): Promise<IncomingMessage> {
      const request = get({ port, host: '127.0.0.1', path: PATH, agent: false });
      request.on('error', () => {});
      t.after(() => request.destroy());
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return response;
    },
  };
}

const until = (isSo: () => boolean): Promise<boolean> => untilRight(async () => isSo(), Boolean);

async function* threePages(): ListStream {
  yield pageOf('a', 'b');
  yield pageOf();
  yield pageOf('c');
  return pageOf('d');
}

test('over REST, pages make one JSON text', async (t) => {
  const { fetch, observed } = await serve(t, threePages);
  const response = await fetch();
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('x-request-id'), 'new-id');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-length'), null);
  assert.equal(await response.text(), encodeJson(GroupListSchema, pageOf('a', 'b', 'c', 'd')));
  assert.deepEqual(observed, ['rest OK']);
});

test('over gRPC, pages make one message', async (t) => {
  const { address, observed } = await serve(t, threePages);
  const { response } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.deepEqual(fromBinary(GroupListSchema, response ?? assert.fail()), pageOf('a', 'b', 'c', 'd'));
  assert.deepEqual(observed, ['grpc OK']);
});

test('a single page has a length, as any other answer', async (t) => {
  const answers = [pageOf('a'), pageOf()];
  const expected = answers.map((answer) => encodeJson(GroupListSchema, answer));
  // biome-ignore lint/correctness/useYield: a list of one page yields none before the last.
  const { fetch } = await serve(t, async function* () {
    return answers.shift() ?? assert.fail();
  });
  for (const json of expected) {
    const response = await fetch();
    assert.equal(await response.text(), json);
    assert.equal(response.headers.get('content-length'), String(json.length));
  }
});

test('nothing is read that the client has no room for', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { begin, responses } = await serve(t, () => endless(course, LARGE));
  const response = await begin();
  const [sending = assert.fail()] = responses;
  await until(() => sending.writableNeedDrain);
  // Each turn would be enough for a page. What was read lies in the buffers of the system, some megabytes, and in one page.
  for (let turn = 0; turn < 500; turn++) await setImmediate();
  const held = course.read;
  assert.ok(held < 50, `${held} pages`);

  response.resume();
  await until(() => course.read > held + 20);
  response.destroy();
  await until(() => course.ended);
});

test('a client that goes away ends the reading', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { begin, observed, logged } = await serve(t, () => endless(course, LARGE));
  const response = await begin();
  await once(response, 'data');
  response.destroy();
  await until(() => course.ended && observed.length > 0);
  assert.deepEqual(observed, ['rest CANCELLED']);
  assert.deepEqual(
    logged.map((line) => JSON.parse(line).code),
    ['CANCELLED'],
  );
});

test('a client that takes nothing any more is given up', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { begin, observed } = await serve(t, () => endless(course, LARGE), { timeoutMs: 200 });
  const response = await begin();
  await until(() => observed.length > 0);
  assert.deepEqual(observed, ['rest DEADLINE_EXCEEDED']);
  assert.ok(course.ended);
  await assert.rejects(text(response));
});

test('a list that fails half-way is cut off, and the log says why', async (t) => {
  const { begin, observed, logged } = await serve(t, async function* () {
    yield pageOf('a');
    yield pageOf('b');
    await setImmediate();
    throw new Error('the disk is gone');
  });
  const response = await begin();
  assert.equal(response.statusCode, 200);
  let seen = '';
  response.setEncoding('utf8').on('data', (part) => (seen += part));
  await assert.rejects(once(response, 'end'), { code: 'ECONNRESET' });
  assert.throws(() => JSON.parse(seen));
  assert.deepEqual(observed, ['rest INTERNAL']);
  const lines = logged.map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ message, requestId }) => [message, requestId]),
    [
      ['call failed', 'new-id'],
      ['call', 'new-id'],
      ['answer cut off', 'new-id'],
    ],
  );
  assert.match(JSON.stringify(lines[0]), /the disk is gone/);
});

test('a list that fails at once has a status', async (t) => {
  // biome-ignore lint/correctness/useYield: it never comes that far.
  const { fetch, address } = await serve(t, async function* () {
    throw invalid('name', 'is too long');
  });
  const response = await fetch();
  assert.equal(response.status, 400);
  assert.equal(((await response.json()) as { message: string }).message, 'Invalid argument: name: is too long');
  const { error } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.equal(error?.code, Code.INVALID_ARGUMENT);
});

test('over gRPC, a list that fails half-way is an error', async (t) => {
  const { address } = await serve(t, async function* () {
    yield pageOf('a');
    throw new ApiError(Code.UNAVAILABLE, 'Unavailable: the database is gone');
  });
  const { error, response } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.deepEqual([error?.code, response], [Code.UNAVAILABLE, undefined]);
});

test('over gRPC, a list that is too long for a message is refused as soon as that is known', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { address, observed } = await serve(t, () => endless(course, LARGE), { maxListBytes: 3 * 1024 * 1024 });
  const { error } = await grpcClient(t, address).call(`/${LIST}`, NOTHING);
  assert.equal(error?.code, Code.RESOURCE_EXHAUSTED);
  assert.match(error.details, /more than 3 MiB.*REST/);
  assert.deepEqual([course.read, course.ended, observed], [3, true, ['grpc RESOURCE_EXHAUSTED']]);
});

test('over gRPC, a client that goes away ends the reading', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { address, observed } = await serve(t, () => endless(course, 'short'));
  const { client } = grpcClient(t, address);
  const same = (bytes: Buffer): Buffer => bytes;
  const call = client.makeUnaryRequest(`/${LIST}`, same, same, Buffer.alloc(0), () => {});
  await until(() => course.read > 3);
  call.cancel();
  await until(() => course.ended && observed.length > 0);
  assert.deepEqual(observed, ['grpc CANCELLED']);
});

test('over gRPC, the deadline of a client ends the reading', async (t) => {
  const course: Course = { read: 0, ended: false };
  const { address, observed } = await serve(t, () => endless(course, 'short'));
  const { error } = await grpcClient(t, address).call(`/${LIST}`, NOTHING, { deadline: Date.now() + 200 });
  assert.equal(error?.code, Code.DEADLINE_EXCEEDED);
  await until(() => course.ended && observed.length > 0);
  assert.equal(observed.length, 1);
});
