import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Message } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { ApiError, Code, unauthenticated } from '../../base/errors.ts';
import { CreateGroupRequestSchema, GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { errorOf, LIMIT, startRestServer } from './server.testing.ts';

test('path, query and body become the request', async (t) => {
  const requests: Message[] = [];
  const { post } = await startRestServer(t, {
    call: async ({ read }) => {
      requests.push(await read());
      return create(GroupSchema, { name: 'ü' });
    },
  });
  const response = await post('\ufeff{"name":"ü"}', { 'content-type': 'Application/JSON; charset=UTF-8' });
  assert.deepEqual(await response.json(), { name: 'ü', verified: false });
  assert.deepEqual(requests, [create(CreateGroupRequestSchema, { parent: 'a', group: { name: 'ü' } })]);
});

const FORM = 'application/x-www-form-urlencoded';
for (const type of [undefined, '', FORM, 'text/plain', 'text/plain; charset=latin1', 'multipart/form-data', 'a;b;c']) {
  test(`a JSON body with the content type ${type} is JSON`, async (t) => {
    const { post } = await startRestServer(t);
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
    const response = await post(new TextEncoder().encode('{"name":"a"}'), headers);
    assert.deepEqual(await response.json(), { name: 'a', verified: false });
  });
}

test('the caller is authenticated before the body is read', async (t) => {
  const { post } = await startRestServer(t, { call: () => Promise.reject(unauthenticated('no token')) });
  const response = await post('{not json', { 'content-type': 'text/plain' });
  assert.equal(response.status, 401);
});

const json = { 'content-type': 'application/json' };
const refusedBodies: [string, string | Uint8Array<ArrayBuffer>, Record<string, string>, string][] = [
  ['a form', 'name=a', { 'content-type': FORM }, 'body: must be valid JSON; expected a value at line 1, column 1'],
  [
    'a text',
    '{name: a}',
    { 'content-type': 'text/plain' },
    'body: must be valid JSON; expected a name in double quotes or } at line 1, column 2',
  ],
  [
    'another charset',
    new Uint8Array([0x7b, 0x22, 0xfc, 0x22, 0x3a, 0x31, 0x7d]),
    { 'content-type': 'application/json; charset=latin1' },
    'body: must be valid UTF-8',
  ],
  ['an unknown encoding', '{}', { ...json, 'content-encoding': 'br' }, 'content-encoding: must be gzip or none'],
  [
    'gzip that is not valid',
    '{}',
    { ...json, 'content-encoding': 'gzip' },
    'body: must be valid gzip, because its content-encoding is gzip',
  ],
  ['broken JSON', '{"name":', json, 'body: must be valid JSON; expected a value at line 1, column 9'],
  ['broken UTF-8', new Uint8Array([0x22, 0xff, 0x22]), json, 'body: must be valid UTF-8'],
  ['a wrong field', '{"name":1}', json, 'name: must be a string of valid Unicode without NUL characters'],
];
for (const [name, body, headers, expected] of refusedBodies) {
  test(`refuses a body: ${name}`, async (t) => {
    const { post } = await startRestServer(t);
    const response = await post(body, headers);
    assert.equal(response.status, 400);
    const error = await errorOf(response);
    assert.equal(error.message, `Invalid argument: ${expected}`);
    const field = expected.slice(0, expected.indexOf(':'));
    assert.deepEqual(error.details[1]?.fieldViolations, [{ field, description: expected.slice(field.length + 2) }]);
  });
}

test('gzip is decompressed, up to the limit', async (t) => {
  const { post } = await startRestServer(t);
  const headers = { ...json, 'content-encoding': 'gzip' };
  assert.equal((await post(gzipSync('{"name":"a"}'), headers)).status, 200);
  assert.equal((await post(gzipSync(JSON.stringify({ name: 'a'.repeat(100_000) })), headers)).status, 413);
});

const sized = (bytes: number) => JSON.stringify({ name: 'a'.repeat(bytes - 11) });

test('a body may be as large as the limit, but not larger', async (t) => {
  const { post } = await startRestServer(t);
  assert.equal((await post(sized(LIMIT))).status, 200);
  const response = await post(sized(LIMIT + 1));
  assert.equal(response.status, 413);
  const { code, message } = await errorOf(response);
  assert.equal(code, Code.RESOURCE_EXHAUSTED);
  assert.equal(message, `Resource exhausted: body: must not exceed ${LIMIT} bytes`);
});

test('a body without a length is refused at the limit, and the connection stays open', {
  timeout: 30_000,
}, async (t) => {
  const { open } = await startRestServer(t);
  const socket = await open();
  const chunk = `${LIMIT.toString(16)}\r\n${' '.repeat(LIMIT)}\r\n`;
  socket.write(`POST /iam/v2/groups HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  assert.match(first.toString(), /^HTTP\/1.1 413 /);
  socket.end(`${chunk}0\r\n\r\nGET /iam/v2/groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  assert.match(await text(socket), /^HTTP\/1.1 200 /m);
});

test('a content-length above the limit is refused before the body is sent', { timeout: 30_000 }, async (t) => {
  const { open } = await startRestServer(t);
  const socket = await open();
  socket.write(`POST /iam/v2/groups HTTP/1.1\r\nHost: x\r\nContent-Length: ${LIMIT + 1}\r\n\r\n`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  assert.match(first.toString(), /^HTTP\/1.1 413 /);
});

test('a client that disconnects while it sends its body cancels the call', { timeout: 30_000 }, async (t) => {
  const failed = Promise.withResolvers<unknown>();
  const { open } = await startRestServer(t, {
    call: async ({ read }) => {
      try {
        return await read();
      } catch (error) {
        failed.resolve(error);
        throw error;
      }
    },
  });
  const socket = await open();
  socket.end('POST /iam/v2/groups HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
  const error = await failed.promise;
  assert.ok(error instanceof ApiError);
  assert.equal(error.code, Code.CANCELLED);
});
