import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test } from 'node:test';
import { create, createRegistry, fromBinary, type Message, toBinary, toJson } from '@bufbuild/protobuf';
import { compressionAlgorithms } from '@grpc/grpc-js';
import { ApiError, Code, invalidFields } from '../../base/errors.ts';
import { GetGroupRequestSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
} from '../../contract/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../contract/gen/google/rpc/status_pb.js';
import type { Dispatch, IncomingCall } from '../../pipeline/call.ts';
import { statusJson } from '../error-status.ts';
import { callWithTimeout, grpcClient, PING, pong, startServer } from '../server.testing.ts';

const GET_GROUP = '/chainguard.platform.iam.v2.GroupsService/GetGroup';
const NOTHING = new Uint8Array();
const registry = createRegistry(ErrorInfoSchema, BadRequestSchema, RequestInfoSchema);

/** A dispatcher that reads and records the requests, and returns empty messages. */
function recorder(): { call: Dispatch; recorded: { incoming: IncomingCall; request: Message }[] } {
  const recorded: { incoming: IncomingCall; request: Message }[] = [];
  const call: Dispatch = async (incoming) => {
    recorded.push({ incoming, request: await incoming.read() });
    return create(incoming.method.desc.output);
  };
  return { call, recorded };
}

test('a unary call is passed on with all its properties, and gets a response', async (t) => {
  const { call, recorded } = recorder();
  const { address } = await startServer(t, { call });
  const { error, trailer } = await grpcClient(t, address).call(
    GET_GROUP,
    toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: 'abc' })),
    { metadata: { authorization: 'Bearer token', cgrequestid: 'their-id.1', cgclientid: 'x' } },
  );
  assert.equal(error, undefined);
  assert.deepEqual(trailer.get('x-request-id'), ['their-id.1']);
  const [only] = recorded;
  assert.ok(only);
  assert.deepEqual(only.request, create(GetGroupRequestSchema, { uid: 'abc' }));
  const { method, wire, authorization, requestId, peer, deadline } = only.incoming;
  assert.deepEqual(
    { id: method.id, wire, authorization, requestId, address: peer.address, deadline },
    {
      id: GET_GROUP.slice(1),
      wire: 'grpc',
      authorization: 'Bearer token',
      requestId: 'their-id.1',
      address: '127.0.0.1',
      deadline: undefined,
    },
  );
  assert.match(peer.userAgent, /^grpc-node-js\//);
});

for (const [sent, expected] of [
  [{ 'x-request-id': 'other.id' }, 'other.id'],
  [{ cgrequestid: 'second', 'x-request-id': 'first' }, 'first'],
  [{ cgrequestid: 'not valid' }, 'request-1'],
  [{ cgrequestid: 'x'.repeat(129) }, 'request-1'],
  [{}, 'request-1'],
] as const) {
  test(`request id of ${JSON.stringify(sent).slice(0, 50)} is ${expected}`, async (t) => {
    const { address } = await startServer(t);
    const { trailer } = await grpcClient(t, address).call(PING, NOTHING, { metadata: sent });
    assert.deepEqual(trailer.get('x-request-id'), [expected]);
  });
}

test('an error has the same typed details as over REST', async (t) => {
  const refusal = invalidFields([{ field: 'näme', description: 'must\nnot be empty' }]);
  const { address } = await startServer(t, { call: () => Promise.reject(refusal) });
  const { error } = await grpcClient(t, address).call(PING, NOTHING);
  assert.equal(error?.code, Code.INVALID_ARGUMENT);
  assert.equal(error.details, 'Invalid argument: näme: must not be empty');
  assert.deepEqual(error.metadata.get('x-request-id'), ['request-1']);
  const [details] = error.metadata.get('grpc-status-details-bin');
  assert.ok(details instanceof Buffer);
  assert.deepEqual(
    toJson(StatusSchema, fromBinary(StatusSchema, details), { registry }),
    statusJson(refusal, { domain: 'ping', serviceDomain: 'wharfinger.dev', requestId: 'request-1' }),
  );
});

test('a response and an error may be returned synchronously', async (t) => {
  const { address } = await startServer(t, {
    call({ method, authorization }) {
      if (authorization === undefined) throw new ApiError(Code.UNAUTHENTICATED, 'Unauthenticated: send a token');
      return create(method.desc.output);
    },
  });
  const client = grpcClient(t, address);
  const { error, trailer } = await client.call(PING, NOTHING, { metadata: { authorization: 'Bearer token' } });
  assert.equal(error, undefined);
  assert.deepEqual(trailer.get('x-request-id'), ['request-1']);
  assert.equal((await client.call(PING, NOTHING)).error?.code, Code.UNAUTHENTICATED);
});

test('the message of an unexpected error is not sent', async (t) => {
  const { address } = await startServer(t, { call: () => Promise.reject(new Error('password is secret')) });
  const { error } = await grpcClient(t, address).call(PING, NOTHING);
  assert.equal(error?.code, Code.INTERNAL);
  assert.ok(!JSON.stringify([error, error.metadata]).includes('secret'));
});

test('half a surrogate pair in an error is replaced', async (t) => {
  const refusal = new ApiError(Code.NOT_FOUND, `Not found: ${'\u{1f6a2}'.slice(1)}`);
  const { address } = await startServer(t, { call: () => Promise.reject(refusal) });
  const { error } = await grpcClient(t, address).call(PING, NOTHING);
  assert.equal(error?.details, 'Not found: \ufffd');
});

for (const [name, bytes] of [
  ['a truncated field', [0x0a, 0x05, 0x61]],
  ['an endless varint', Array(11).fill(0xff)],
  ['text that is not UTF-8', [0x0a, 0x01, 0xff]],
  ['text of half a surrogate pair', [0x0a, 0x03, 0xed, 0xa0, 0x80]],
  ['a field number of zero', [0x00, 0x01]],
] as const) {
  test(`malformed bytes are INVALID_ARGUMENT: ${name}`, async (t) => {
    const { address } = await startServer(t, recorder());
    const { error } = await grpcClient(t, address).call(GET_GROUP, Uint8Array.from(bytes));
    assert.equal(error?.code, Code.INVALID_ARGUMENT);
    assert.match(error.details, /^Invalid argument: request: must be a valid chainguard\.platform\.iam\.v2\.GetGroupR/);
  });
}

test('fields of a newer contract are ignored', async (t) => {
  const { call, recorded } = recorder();
  const { address } = await startServer(t, { call });
  const { error } = await grpcClient(t, address).call(GET_GROUP, Uint8Array.from([0x98, 0x06, 0x01]));
  assert.equal(error, undefined);
  assert.deepEqual(recorded[0]?.request, create(GetGroupRequestSchema));
});

test('the deadline reaches the handler, and the signal is aborted when it passes', { timeout: 30_000 }, async (t) => {
  const TIMEOUT_MS = 300;
  const aborted = Promise.withResolvers<unknown>();
  let received: { readonly deadline: number | undefined; readonly at: number } | undefined;
  const { address } = await startServer(t, {
    call: async (incoming) => {
      received = { deadline: incoming.deadline, at: Date.now() };
      await once(incoming.signal(), 'abort');
      aborted.resolve(incoming.signal().reason);
      throw incoming.signal().reason;
    },
  });
  const sentAt = Date.now();
  assert.equal(await callWithTimeout(t, address, PING, TIMEOUT_MS), Code.DEADLINE_EXCEEDED);
  assert.ok(received, 'the call has reached the handler');
  const { deadline = assert.fail('the call has no deadline'), at } = received;
  assert.ok(deadline >= sentAt + TIMEOUT_MS && deadline <= at + TIMEOUT_MS, `${deadline}, sent ${sentAt}, at ${at}`);
  assert.ok((await aborted.promise) instanceof ApiError);
});

test('cancellation aborts the signal, and a response does not', async (t) => {
  const arrived = Promise.withResolvers<IncomingCall>();
  const signals: AbortSignal[] = [];
  const { address } = await startServer(t, {
    call: async (incoming) => {
      signals.push(incoming.signal());
      if (signals.length === 1) return pong;
      arrived.resolve(incoming);
      await once(incoming.signal(), 'abort');
      throw incoming.signal().reason;
    },
  });
  const client = grpcClient(t, address);
  assert.equal(await client.ping(), 'pong');
  const unchanged = (bytes: Buffer) => bytes;
  const pending = client.client.makeUnaryRequest(PING, unchanged, unchanged, Buffer.from(NOTHING), () => {});
  const signal = (await arrived.promise).signal();
  pending.cancel();
  await once(signal, 'abort');
  assert.equal((signal.reason as ApiError).code, Code.CANCELLED);
  assert.equal(signals[0]?.aborted, false);
});

test('a compressed request is accepted', async (t) => {
  const { call, recorded } = recorder();
  const { address } = await startServer(t, { call });
  const request = create(GetGroupRequestSchema, { uid: 'a'.repeat(10_000) });
  const { error } = await grpcClient(t, address, {
    'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
  }).call(GET_GROUP, toBinary(GetGroupRequestSchema, request));
  assert.equal(error, undefined);
  assert.deepEqual(recorded[0]?.request, request);
});

for (const [name, algorithm, details] of [
  ['plain', compressionAlgorithms.identity, /larger than max \(1001 vs 1000\)/],
  ['compressed', compressionAlgorithms.gzip, /decompresses to a size larger than 1000/],
] as const) {
  test(`a message above the limit is RESOURCE_EXHAUSTED: ${name}`, async (t) => {
    const { address } = await startServer(t, { maxMessageBytes: 1000 });
    const client = grpcClient(t, address, { 'grpc.default_compression_algorithm': algorithm });
    const { error } = await client.call(PING, Buffer.alloc(1001));
    assert.equal(error?.code, Code.RESOURCE_EXHAUSTED);
    assert.match(error.details, details);
    assert.equal(await client.ping(), 'pong');
  });
}

test('a user agent of 9 KB and further metadata of 9 KB are accepted', async (t) => {
  const { call, recorded } = recorder();
  const { address } = await startServer(t, { call });
  const client = grpcClient(t, address, { 'grpc.primary_user_agent': 'u'.repeat(9_000) });
  const { error } = await client.call(PING, NOTHING, { metadata: { more: 'm'.repeat(9_000) } });
  assert.equal(error, undefined);
  assert.ok((recorded[0]?.incoming.peer.userAgent.length ?? 0) > 9_000);
});

test('unknown services and methods are UNIMPLEMENTED', async (t) => {
  const { address } = await startServer(t);
  const client = grpcClient(t, address);
  for (const path of [`${PING}Pong`, '/no.such.Service/Ping', '/', '/ä%/..']) {
    assert.equal((await client.call(path, NOTHING)).error?.code, Code.UNIMPLEMENTED, path);
  }
});

test('invalid HTTP/2 requests get an error and do not disturb other clients', async (t) => {
  const { address } = await startServer(t);
  const session = connect(`http://${address}`);
  t.after(() => session.destroy());
  const grpc = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc' };
  for (const [headers, expected] of [
    [{ ...grpc, ':path': '/%00\u00e9' }, { 'grpc-status': '12' }],
    [{ ...grpc, authorization: 'Bearer \u00e9' }, { 'grpc-status': '12' }],
    [{ ...grpc, 'grpc-timeout': 'soon' }, { 'grpc-status': '13' }],
    [{ ...grpc, 'trace-bin': '***' }, { 'grpc-status': '12' }],
  ] as const) {
    const stream = session.request(headers, { endStream: true });
    const [headersReceived] = await once(stream, 'response');
    for (const [key, value] of Object.entries(expected))
      assert.equal(headersReceived[key], value, JSON.stringify(headers));
    stream.resume();
  }
  assert.equal(await grpcClient(t, address).ping(), 'pong');
});

test('a connection with a request that never ends is closed, and so is an idle session', async (t) => {
  const { address } = await startServer(t, { maxConnectionMs: 600 });
  const endless = connect(`http://${address}`);
  const stream = endless.request({ ':method': 'POST', ':path': PING, 'content-type': 'application/grpc' });
  stream.on('error', () => {});
  const idle = connect(`http://${address}`);
  await Promise.all([once(endless, 'close'), once(idle, 'close')]);
});
