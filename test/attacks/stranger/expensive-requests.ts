import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { create, type DescMethodUnary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { compressionAlgorithms, credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import { Code } from '../../../src/base/errors.ts';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { findDatabase } from '../../support/databases.ts';
import { type MeasuredServer, startMeasuredServer } from '../../support/measured-server.ts';

/** The most processor time for which one request may hold the event loop. */
const MAX_BLOCK_MS = 50;

const { exchange } = SecurityTokenService.method;
const FORM = 'application/x-www-form-urlencoded';
/** Four kilobytes that are four megabytes when they are decompressed. */
const formBomb = gzipSync('a&'.repeat(2_000_000));
const jsonBomb = gzipSync(`{"code":"","a":[${'[],'.repeat(1_390_000)}[]]}`);

// These requests are refused before the database is used, so one database is enough.
describe('requests of an unauthenticated client that are cheap to send', () => {
  let server: MeasuredServer;
  before(async () => {
    server = await startMeasuredServer(findDatabase());
  });
  after(() => server.remove());

  async function isCheap(attack: () => Promise<number>, expectedStatus: number): Promise<void> {
    let status = 0;
    const block = await server.typicalBlock(async () => {
      status = await attack();
    });
    assert.equal(status, expectedStatus);
    assert.ok(block < MAX_BLOCK_MS, `the event loop was held for ${block.toFixed(1)} ms`);
  }

  async function post(path: string, body: Buffer | string, headers: Record<string, string>): Promise<number> {
    const response = await fetch(server.url + path, { method: 'POST', headers, body });
    await response.arrayBuffer();
    return response.status;
  }

  test('a compressed form without a token is refused before it is read', async () => {
    const headers = { 'content-type': FORM, 'content-encoding': 'gzip' };
    await isCheap(() => post('/sts/exchange', formBomb, headers), 401);
    await isCheap(() => post('/sts/exchange_refresh_token', formBomb, headers), 401);
    await isCheap(() => post('/auth/v1/register', formBomb, headers), 401);
  });

  test('a compressed body of a public method is not decompressed beyond 64 KiB', async () => {
    const headers = { authorization: 'Bearer x', 'content-encoding': 'gzip' };
    await isCheap(() => post('/sts/exchange', formBomb, { ...headers, 'content-type': FORM }), 413);
    await isCheap(() => post('/auth/v1/register', jsonBomb, { ...headers, 'content-type': 'application/json' }), 413);
  });

  test('a form with many parameters is refused at the first wrong ones', async () => {
    const headers = { authorization: 'Bearer x', 'content-type': FORM };
    await isCheap(() => post('/sts/exchange', 'a&'.repeat(32_000), headers), 400);
    await isCheap(() => post('/sts/exchange', 'aud=a&'.repeat(10_000), headers), 401);
  });

  test('a query with many parameters or values is cheap', async () => {
    const get = (target: string) => async () => (await fetch(server.url + target)).status;
    await isCheap(get(`/advisory/v2/documents?${'cves=a&'.repeat(9_000)}`), 400);
    await isCheap(get(`/advisory/v2/documents?cves=${'a,'.repeat(31_000)}`), 400);
    await isCheap(get(`/advisory/v2/documents?${'a[0].b&'.repeat(9_000)}`), 400);
  });

  test('the form of the token endpoint of the registry is cheap', async () => {
    const scopes = 'scope=repository:a/b:pull&'.repeat(2_400);
    await isCheap(() => post('/v2/token', 'a&'.repeat(32_000), { 'content-type': FORM }), 401);
    await isCheap(() => post('/v2/token', scopes, { 'content-type': FORM }), 401);
  });

  test('a token with deep or long content is cheap', async () => {
    const part = (text: string) => Buffer.from(text).toString('base64url');
    const token = `${part('{"alg":"RS256"}')}.${part(`{"iss":"https://x.example.com","aud":[${'['.repeat(9000)}`)}.a`;
    const get = (authorization: string) => async () =>
      (await fetch(`${server.url}/iam/v2/groups`, { headers: { authorization } })).status;
    await isCheap(get(`Bearer ${token}`), 401);
    await isCheap(get(`Bearer ${'a.'.repeat(7_000)}`), 401);
  });

  /** Calls a method over gRPC with a compressed message, and returns the status code. */
  function callCompressed<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M['input']>,
  ): Promise<number> {
    const client = new GrpcClient(new URL(server.url).host, credentials.createInsecure(), {
      'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
    });
    const metadata = new Metadata();
    metadata.set('authorization', 'Bearer x');
    const bytes = toBinary(method.input, create(method.input, request as never));
    return new Promise<number>((resolve) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: Uint8Array) => Buffer.from(message),
        (message: Buffer) => message,
        bytes,
        metadata,
        (error) => resolve(error?.code ?? Code.OK),
      );
    }).finally(() => client.close());
  }

  test('a compressed gRPC message with many values is refused before it is decoded', async () => {
    const aud = Array(600_000).fill('a');
    let code = 0;
    const block = await server.typicalBlock(async () => {
      code = await callCompressed(exchange, { aud });
    });
    assert.ok(code === Code.INVALID_ARGUMENT || code === Code.RESOURCE_EXHAUSTED, String(code));
    assert.ok(block < MAX_BLOCK_MS, `the event loop was held for ${block.toFixed(1)} ms`);
    await callCompressed(Auth.method.register, { code: 'a'.repeat(4_000_000) });
  });
});
