import type { Socket } from 'node:net';
import type { DescFile, Message } from '@bufbuild/protobuf';
import {
  logVerbosity,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { ApiError, Code } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { chain, type MaybePromise } from '../../base/maybe-promise.ts';
import type { Method } from '../../contract/method.ts';
import { soleListField } from '../../contract/streamed-list.ts';
import type { Dispatch, IncomingCall } from '../../pipeline/call.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import { requestIdOf } from '../request-id.ts';
import { type CollectedList, collectList } from './collected-list.ts';
import { decodeRequest } from './decode-request.ts';
import { encodeMessage } from './encode-message.ts';
import { grpcStatusOf } from './error-metadata.ts';
import { addHealth } from './health.ts';
import { addReflection } from './reflection.ts';

export interface GrpcServerOptions {
  readonly methods: readonly Method[];
  readonly call: Dispatch;
  /** The files that reflection returns. */
  readonly files: () => readonly DescFile[];
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** The limit for a request message. */
  readonly maxMessageBytes?: number;
  /** The limit for a response that is a list without pages. */
  readonly maxListBytes?: number;
  /** The age at which a connection is closed, so that even a request that never ends is closed at last. */
  readonly maxConnectionMs?: number;
  readonly log: Log;
}

export interface GrpcServer {
  accept(socket: Socket): void;
  /** Refuses new calls, waits for running calls, and frees all resources when all connections are `closed`. */
  stop(closed: Promise<void>): Promise<void>;
}

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

/** Serves every method of the table over gRPC, and also reflection and health checks. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { methods, files, call: dispatch, serviceDomain, newRequestId, log } = options;
  const { maxMessageBytes = 4 * 1024 * 1024, maxListBytes = 64 * 1024 * 1024, maxConnectionMs = 3_600_000 } = options;
  // The library would print header values that it cannot parse, among them possibly a token.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    // Each stream may buffer an incomplete message.
    'grpc.max_concurrent_streams': 100,
    'grpc.max_connection_idle_ms': maxConnectionMs / 12,
    'grpc.max_connection_age_ms': maxConnectionMs,
    'grpc.max_connection_age_grace_ms': maxConnectionMs / 60,
    'grpc.enable_channelz': 0,
  });

  for (const method of methods) {
    const { output } = method.desc;
    const newList = soleListField(output) && (() => collectList(output, maxListBytes));
    const handler = (call: UnaryCall, respond: sendUnaryData<Buffer>) => handle(method, call, respond, newList?.());
    // Requests are decoded later: with an error in a deserializer the library would respond INTERNAL.
    if (!server.register(`/${method.id}`, handler, unchanged, unchanged, 'unary')) {
      throw new Error(`${method.id} is registered twice`);
    }
  }
  addReflection(server, files);
  const health = addHealth(server, new Set(methods.map(({ id }) => id.slice(0, id.indexOf('/')))));
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());

  function handle(
    method: Method,
    call: UnaryCall,
    respond: sendUnaryData<Buffer>,
    list: CollectedList | undefined,
  ): void {
    const requestId = requestIdOf((name) => first(call.metadata, name), newRequestId);
    const cancellation = createCancellation();
    let headers: Metadata | undefined;
    const setHeader = (name: string, value: string) => {
      headers ??= new Metadata();
      headers.set(name, value);
    };
    const fail = (error: unknown): void => {
      if (!(error instanceof ApiError)) log.error({ error, requestId, method: method.id }, 'call failed');
      const apiError = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the call failed');
      respond(grpcStatusOf(apiError, { domain: method.domain, serviceDomain, requestId }));
    };
    const send = (response: Buffer): void => {
      if (headers) call.sendMetadata(headers);
      const trailer = new Metadata();
      trailer.set('x-request-id', requestId);
      respond(null, response, trailer);
    };
    const encode = (message: Message) => (list ? list.end(message) : encodeMessage(method.desc.output, message));
    let response: MaybePromise<Buffer>;
    try {
      response = chain(dispatch(incomingCall(method, call, requestId, cancellation, setHeader, list?.add)), encode);
      if (!(response instanceof Promise)) send(response);
    } catch (error) {
      fail(error);
      return;
    }
    if (!(response instanceof Promise)) return;
    call.on('cancelled', cancellation.cancel);
    // Removed after the call, because 'cancelled' is also emitted after every response.
    response
      .finally(() => call.off('cancelled', cancellation.cancel))
      .then(send)
      .catch(fail);
  }

  return {
    accept: connections.injectConnection,
    async stop(closed) {
      health.stop();
      // Its callback is not awaited: it is sometimes never called when a client disconnects at this moment.
      server.tryShutdown(() => {});
      await closed;
      server.forceShutdown();
    },
  };
}

const unchanged = (bytes: Buffer): Buffer => bytes;

function incomingCall(
  method: Method,
  call: UnaryCall,
  requestId: string,
  cancellation: Cancellation,
  setHeader: (name: string, value: string) => void,
  sendPart: IncomingCall['sendPart'],
): IncomingCall {
  const deadline = Number(call.getDeadline());
  return {
    method,
    wire: 'grpc',
    authorization: first(call.metadata, 'authorization'),
    requestId,
    peer: { address: withoutPort(call.getPeer()), userAgent: first(call.metadata, 'user-agent') ?? '' },
    signal: cancellation.signal,
    deadline: Number.isFinite(deadline) ? deadline : undefined,
    setHeader,
    sendPart,
    read: () => decodeRequest(method, call.request),
  };
}

const first = (metadata: Metadata, key: string): string | undefined => metadata.get(key)[0]?.toString();

function withoutPort(peer: string): string {
  const colon = peer.lastIndexOf(':');
  return colon < 0 ? peer : peer.slice(0, colon);
}
