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
import { grpcClient, PING, pong, startServer } from '../server.testing.ts';

const GET_GROUP = '/chainguard.platform.iam.v2.GroupsService/GetGroup';
const NOTHING = new Uint8Array();
const registry = createRegistry(ErrorInfoSchema, BadRequestSchema, RequestInfoSchema);

/** Reads the request as the pipeline would, keeps it, and answers an empty message. */
function recorder(): { call: Dispatch; seen: { incoming: IncomingCall; request: Message }[] } {
  const seen: { incoming: IncomingCall; request: Message }[] = [];
  const call: Dispatch = async (incoming) => {
    seen.push({ incoming, request: await incoming.read() });
    return create(incoming.method.desc.output);
  };
  return { call, seen };
}

test('a unary call arrives whole and is answered', async (t) => {
  const { call, seen } = recorder();
  const { address } = await startServer(t, { call });
  const { error, trailer } = await grpcClient(t, address).call(
    GET_GROUP,
    toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: 'abc' })),
    { metadata: { authorization: 'Bearer token', cgrequestid: 'their-id.1', cgclientid: 'x' } },
  );
  assert.equal(error, undefined);
  assert.deepEqual(trailer.get('x-request-id'), ['their-id.1']);
  const [only] = seen;
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

for (const [sent, kept] of [
  [{ 'x-request-id': 'other.id' }, 'other.id'],
  [{ cgrequestid: 'second', 'x-request-id': 'first' }, 'first'],
  [{ cgrequestid: 'not sane' }, 'request-1'],
  [{ cgrequestid: 'x'.repeat(129) }, 'request-1'],
  [{}, 'request-1'],
] as const) {
  test(`request id of ${JSON.stringify(sent).slice(0, 50)} is ${kept}`, async (t) => {
    const { address } = await startServer(t);
    const { trailer } = await grpcClient(t, address).call(PING, NOTHING, { metadata: sent });
    assert.deepEqual(trailer.get('x-request-id'), [kept]);
  });
}

test('an error carries the same typed details as over REST', async (t) => {
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

test('an answer and an error that are there at once need no promise', async (t) => {
  const { address } = await startServer(t, {
    call({ method, authorization }) {
      if (authorization === undefined) throw new ApiError(Code.UNAUTHENTICATED, 'Unauthenticated: who are you?');
      return create(method.desc.output);
    },
  });
  const client = grpcClient(t, address);
  const { error, trailer } = await client.call(PING, NOTHING, { metadata: { authorization: 'Bearer token' } });
  assert.equal(error, undefined);
  assert.deepEqual(trailer.get('x-request-id'), ['request-1']);
  assert.equal((await client.call(PING, NOTHING)).error?.code, Code.UNAUTHENTICATED);
});

test('an error that is not ours says nothing of itself', async (t) => {
  const { address } = await startServer(t, { call: () => Promise.reject(new Error('password is secret')) });
  const { error } = await grpcClient(t, address).call(PING, NOTHING);
  assert.equal(error?.code, Code.INTERNAL);
  assert.ok(!JSON.stringify([error, error.metadata]).includes('secret'));
});

test('an error with half a surrogate pair is sent all the same', async (t) => {
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
  const { call, seen } = recorder();
  const { address } = await startServer(t, { call });
  const { error } = await grpcClient(t, address).call(GET_GROUP, Uint8Array.from([0x98, 0x06, 0x01]));
  assert.equal(error, undefined);
  assert.deepEqual(seen[0]?.request, create(GetGroupRequestSchema));
});

test('the deadline arrives, and when it passes the signal is aborted', async (t) => {
  const aborted = Promise.withResolvers<unknown>();
  const deadline = Date.now() + 200;
  const { address } = await startServer(t, {
    call: async (incoming) => {
      assert.ok(Math.abs((incoming.deadline ?? 0) - deadline) < 150);
      await once(incoming.signal(), 'abort');
      aborted.resolve(incoming.signal().reason);
      throw incoming.signal().reason;
    },
  });
  const { error } = await grpcClient(t, address).call(PING, NOTHING, { deadline });
  assert.equal(error?.code, Code.DEADLINE_EXCEEDED);
  assert.ok((await aborted.promise) instanceof ApiError);
});

test('cancellation aborts the signal, and an answer does not', async (t) => {
  const arrived = Promise.withResolvers<IncomingCall>();
  const answered: AbortSignal[] = [];
  const { address } = await startServer(t, {
    call: async (incoming) => {
      answered.push(incoming.signal());
      if (answered.length === 1) return pong;
      arrived.resolve(incoming);
      await once(incoming.signal(), 'abort');
      throw incoming.signal().reason;
    },
  });
  const client = grpcClient(t, address);
  assert.equal(await client.ping(), 'pong');
  const same = (bytes: Buffer) => bytes;
  const pending = client.client.makeUnaryRequest(PING, same, same, Buffer.from(NOTHING), () => {});
  const signal = (await arrived.promise).signal();
  pending.cancel();
  await once(signal, 'abort');
  assert.equal((signal.reason as ApiError).code, Code.CANCELLED);
  assert.equal(answered[0]?.aborted, false);
});

test('a compressed request is understood', async (t) => {
  const { call, seen } = recorder();
  const { address } = await startServer(t, { call });
  const request = create(GetGroupRequestSchema, { uid: 'a'.repeat(10_000) });
  const { error } = await grpcClient(t, address, {
    'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
  }).call(GET_GROUP, toBinary(GetGroupRequestSchema, request));
  assert.equal(error, undefined);
  assert.deepEqual(seen[0]?.request, request);
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

test('a user agent of 9 KB and more metadata beside it are fine', async (t) => {
  const { call, seen } = recorder();
  const { address } = await startServer(t, { call });
  const client = grpcClient(t, address, { 'grpc.primary_user_agent': 'u'.repeat(9_000) });
  const { error } = await client.call(PING, NOTHING, { metadata: { more: 'm'.repeat(9_000) } });
  assert.equal(error, undefined);
  assert.ok((seen[0]?.incoming.peer.userAgent.length ?? 0) > 9_000);
});

test('unknown services and methods are UNIMPLEMENTED', async (t) => {
  const { address } = await startServer(t);
  const client = grpcClient(t, address);
  for (const path of [`${PING}Pong`, '/no.such.Service/Ping', '/', '/ä%/..']) {
    assert.equal((await client.call(path, NOTHING)).error?.code, Code.UNIMPLEMENTED, path);
  }
});

test('strange HTTP/2 requests harm nobody', async (t) => {
  const { address } = await startServer(t);
  const session = connect(`http://${address}`);
  t.after(() => session.destroy());
  const grpc = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc' };
  for (const [headers, expected] of [
    [{ ':path': '/ping/v2/ping' }, { ':status': 415 }],
    [{ ...grpc, ':path': '/%00\u00e9' }, { 'grpc-status': '12' }],
    [{ ...grpc, authorization: 'Bearer \u00e9' }, { 'grpc-status': '12' }],
    [{ ...grpc, 'grpc-timeout': 'soon' }, { 'grpc-status': '13' }],
    [{ ...grpc, 'trace-bin': '***' }, { 'grpc-status': '12' }],
  ] as const) {
    const stream = session.request(headers, { endStream: true });
    const [answer] = await once(stream, 'response');
    for (const [key, value] of Object.entries(expected)) assert.equal(answer[key], value, JSON.stringify(headers));
    stream.resume();
  }
  assert.equal(await grpcClient(t, address).ping(), 'pong');
});

test('a request that never ends is cut off with its connection, and so is an idle session', async (t) => {
  const { address } = await startServer(t, { maxConnectionMs: 600 });
  const endless = connect(`http://${address}`);
  const stream = endless.request({ ':method': 'POST', ':path': PING, 'content-type': 'application/grpc' });
  stream.on('error', () => {});
  const idle = connect(`http://${address}`);
  await Promise.all([once(endless, 'close'), once(idle, 'close')]);
});
