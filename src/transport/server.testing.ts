import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { create, type DescFile, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { type CallOptions, Client, type ClientOptions, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { createLogger } from '../base/log.ts';
import {
  PingRequestSchema,
  type PingResponse,
  PingResponseSchema,
} from '../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { files as contract, methodTable } from '../contract/method-table.ts';
import type { Dispatch } from '../pipeline/call.ts';
import { loadGrpcOnFirstUse } from './grpc/load-on-first-use.ts';
import type { Limits } from './limits.ts';
import { openPort } from './port.ts';
import { createProtocolRouter, type ProtocolRouter } from './protocol-router.ts';

/** A self-signed certificate and its key for localhost and 127.0.0.1, valid until 2120. */
export const tlsPair = { cert: testFile('tls/cert.pem'), key: testFile('tls/key.pem') };

function testFile(name: string): string {
  return readFileSync(new URL(`../../test/data/${name}`, import.meta.url), 'utf8');
}

export const pong: Message = create(PingResponseSchema, { response: 'pong' });
export const PING = '/chainguard.platform.ping.v2.PingService/Ping';

export interface TestServer extends ProtocolRouter {
  readonly port: number;
  readonly address: string;
}

export interface TestServerOptions {
  readonly http?: (req: IncomingMessage, res: ServerResponse) => void;
  readonly call?: Dispatch;
  /** Every caller is authenticated by default. */
  readonly authenticate?: (authorization: string | undefined) => unknown;
  readonly isReflectionPublic?: boolean;
  readonly tls?: boolean;
  readonly limits?: Limits;
  readonly files?: readonly DescFile[];
  readonly maxMessageBytes?: number;
  readonly maxListBytes?: number;
  readonly maxConnectionMs?: number;
  /** Any free one by default. */
  readonly port?: number;
}

/**
 * Starts a router on a free port that responds `hello` over HTTP and `pong` over gRPC. It is stopped after the test.
 */
export async function startServer(t: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  let requests = 0;
  const common = {
    serviceDomain: 'wharfinger.dev',
    newRequestId: () => `request-${++requests}`,
    log: createLogger({ level: 'silent' }),
  };
  const { http = (_, res) => res.end('hello'), call = async () => pong, files = contract } = options;
  const { tls, limits, maxMessageBytes, maxListBytes, maxConnectionMs } = options;
  const router = createProtocolRouter({
    ...common,
    http,
    grpc: loadGrpcOnFirstUse({
      ...common,
      methods: methodTable(contract),
      files: () => files,
      call,
      authenticate: options.authenticate ?? (() => {}),
      isReflectionPublic: options.isReflectionPublic ?? true,
      ...(limits && { limits }),
      ...(maxMessageBytes && { maxMessageBytes }),
      ...(maxListBytes && { maxListBytes }),
    }),
    ...(maxConnectionMs && { maxConnectionMs }),
    ...(tls && { tls: tlsPair }),
    ...(limits && { limits }),
  });
  const opened = await openPort({ host: '127.0.0.1', port: options.port ?? 0 });
  const { port } = opened;
  opened.serve(router.accept);
  const stop: ProtocolRouter['stop'] = (stopOptions) => {
    opened.close();
    return router.stop(stopOptions);
  };
  t.after(() => stop({ graceMs: 0 }));
  return { ...router, stop, port, address: `127.0.0.1:${port}` };
}

export interface GrpcResponse {
  readonly error: ServiceError | undefined;
  readonly response: Buffer | undefined;
  readonly trailer: Metadata;
}

export interface GrpcClient {
  /** A unary call with raw bytes both ways; never rejects. */
  call(
    path: string,
    request: Uint8Array,
    options?: CallOptions & { metadata?: Record<string, string> },
  ): Promise<GrpcResponse>;
  ping(): Promise<string>;
  readonly client: Client;
}

/** A real gRPC client, closed after the test. */
export function grpcClient(
  t: TestContext,
  address: string,
  options: ClientOptions & { tls?: boolean; ca?: string } = {},
): GrpcClient {
  const { tls, ca = tls ? tlsPair.cert : undefined, ...channelOptions } = options;
  const channel = ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca));
  const client = new Client(address, channel, { 'grpc.use_local_subchannel_pool': 1, ...channelOptions });
  t.after(() => client.close());

  const call: GrpcClient['call'] = (path, request, { metadata: entries = {}, ...callOptions } = {}) => {
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(entries)) metadata.set(key, value);
    return new Promise((resolve) => {
      let result: Pick<GrpcResponse, 'error' | 'response'>;
      const done = (error: ServiceError | null, response?: Buffer) => {
        result = { error: error ?? undefined, response };
      };
      client
        .makeUnaryRequest(path, unchanged, unchanged, Buffer.from(request), metadata, callOptions, done)
        .on('status', ({ metadata: trailer }) => setImmediate(() => resolve({ ...result, trailer })));
    });
  };
  return {
    client,
    call,
    async ping() {
      const { error, response } = await call(PING, toBinary(PingRequestSchema, create(PingRequestSchema)));
      if (error !== undefined || response === undefined) throw error;
      const message: PingResponse = fromBinary(PingResponseSchema, response);
      return message.response;
    },
  };
}

const unchanged = (bytes: Buffer): Buffer => bytes;

/**
 * Sends a unary call with an empty message and a timeout, and returns the gRPC status. The server starts to count when
 * it receives the call, so the call reaches the handler even if connecting takes long. A gRPC client would count from
 * before it connects, and might never send the call.
 */
export function callWithTimeout(t: TestContext, address: string, path: string, timeoutMs: number): Promise<number> {
  const session = connectHttp2(`http://${address}`);
  t.after(() => session.destroy());
  const status = Promise.withResolvers<number>();
  const readStatus = (headers: IncomingHttpHeaders): void => {
    if (headers['grpc-status'] !== undefined) status.resolve(Number(headers['grpc-status']));
  };
  session.on('error', status.reject);
  session
    .request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': `${timeoutMs}m`,
    })
    // A successful response has its status in the trailers, an error may have it in the headers.
    .on('response', readStatus)
    .on('trailers', readStatus)
    .on('error', status.reject)
    .on('close', () => status.reject(new Error('the stream was closed without a gRPC status')))
    // The prefix of a message: not compressed, length 0.
    .end(Buffer.alloc(5))
    .resume();
  return status.promise;
}

/** A plain connection, destroyed after the test. */
export async function open(t: TestContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

/** Sends bytes on a new connection and returns all bytes that the server sends until it closes the connection. */
export async function exchange(t: TestContext, port: number, bytes: string): Promise<string> {
  const socket = await open(t, port);
  socket.write(bytes, 'latin1');
  return text(socket);
}
