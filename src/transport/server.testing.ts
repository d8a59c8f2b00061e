import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
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
import { createGrpc } from './grpc/grpc.ts';
import type { Limits } from './limits.ts';
import { createListener, type Listener } from './listener.ts';

/** A self-signed pair for localhost and 127.0.0.1, valid until 2120. */
export const tlsPair = { cert: testFile('tls/cert.pem'), key: testFile('tls/key.pem') };

function testFile(name: string): string {
  return readFileSync(new URL(`../../test/data/${name}`, import.meta.url), 'utf8');
}

export const pong: Message = create(PingResponseSchema, { response: 'pong' });
export const PING = '/chainguard.platform.ping.v2.PingService/Ping';

export interface TestServer extends Listener {
  readonly port: number;
  readonly address: string;
}

export interface TestServerOptions {
  readonly http?: (req: IncomingMessage, res: ServerResponse) => void;
  readonly call?: Dispatch;
  readonly tls?: boolean;
  readonly limits?: Limits;
  readonly files?: readonly DescFile[];
  readonly maxMessageBytes?: number;
  readonly maxListBytes?: number;
  readonly maxConnectionMs?: number;
  /** Any free one by default. */
  readonly port?: number;
}

/** A listener on a free port that answers `hello` over HTTP and `pong` over gRPC, stopped after the test. */
export async function startServer(t: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  let requests = 0;
  const common = {
    serviceDomain: 'wharfinger.dev',
    newRequestId: () => `request-${++requests}`,
    log: createLogger({ level: 'silent' }),
  };
  const { http = (_, res) => res.end('hello'), call = async () => pong, files = contract } = options;
  const { tls, limits, maxMessageBytes, maxListBytes, maxConnectionMs } = options;
  const listener = createListener({
    ...common,
    http,
    grpc: createGrpc({
      ...common,
      methods: methodTable(contract),
      files: () => files,
      call,
      ...(maxMessageBytes && { maxMessageBytes }),
      ...(maxListBytes && { maxListBytes }),
      ...(maxConnectionMs && { maxConnectionMs }),
    }),
    ...(tls && { tls: tlsPair }),
    ...(limits && { limits }),
  });
  const { port } = await listener.listen('127.0.0.1', options.port ?? 0);
  t.after(() => listener.stop(0));
  return { ...listener, port, address: `127.0.0.1:${port}` };
}

export interface Answer {
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
  ): Promise<Answer>;
  ping(): Promise<string>;
  readonly client: Client;
}

/** A real gRPC client, closed after the test. */
export function grpcClient(
  t: TestContext,
  address: string,
  options: ClientOptions & { tls?: boolean } = {},
): GrpcClient {
  const { tls, ...channelOptions } = options;
  const channel = tls ? credentials.createSsl(Buffer.from(tlsPair.cert)) : credentials.createInsecure();
  const client = new Client(address, channel, { 'grpc.use_local_subchannel_pool': 1, ...channelOptions });
  t.after(() => client.close());

  const call: GrpcClient['call'] = (path, request, { metadata: entries = {}, ...callOptions } = {}) => {
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(entries)) metadata.set(key, value);
    return new Promise((resolve) => {
      let answered: Pick<Answer, 'error' | 'response'>;
      const done = (error: ServiceError | null, response?: Buffer) => {
        answered = { error: error ?? undefined, response };
      };
      client
        .makeUnaryRequest(path, same, same, Buffer.from(request), metadata, callOptions, done)
        .on('status', ({ metadata: trailer }) => setImmediate(() => resolve({ ...answered, trailer })));
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

const same = (bytes: Buffer): Buffer => bytes;

/** A plain connection, destroyed after the test. */
export async function open(t: TestContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

/** Sends bytes on a fresh connection and answers all that comes back until the server closes it. */
export async function exchange(t: TestContext, port: number, bytes: string): Promise<string> {
  const socket = await open(t, port);
  socket.write(bytes, 'latin1');
  return text(socket);
}
