import type { Socket } from 'node:net';
import type { DescFile, DescMessage, Message } from '@bufbuild/protobuf';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  logVerbosity,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { ApiError, Code, invalid } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { cachedBytes } from '../../contract/message-cache.ts';
import type { Method } from '../../contract/method.ts';
import { soleListField } from '../../contract/streamed-list.ts';
import type { Dispatch, IncomingCall } from '../../pipeline/call.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import { requestIdOf } from '../request-id.ts';
import { type CollectedPages, collectPages } from './collected-list.ts';
import { failure } from './error-metadata.ts';
import { addHealth } from './health.ts';
import { addReflection } from './reflection.ts';

export interface GrpcOptions {
  readonly methods: readonly Method[];
  readonly call: Dispatch;
  /** What reflection shows. */
  readonly files: () => readonly DescFile[];
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** Of a request. */
  readonly maxMessageBytes?: number;
  /** Of an answer that is a list without pages. */
  readonly maxListBytes?: number;
  /** After which a connection is told to come again: so nothing stays for ever, not even a request that never ends. */
  readonly maxConnectionMs?: number;
  readonly log: Log;
}

export interface Grpc {
  accept(socket: Socket): void;
  /** Refuses new calls, lets the running ones end, and lets go of everything when all connections are `closed`. */
  stop(closed: Promise<void>): Promise<void>;
}

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

/** Every method of the table over gRPC, with reflection and health. */
export function createGrpc(options: GrpcOptions): Grpc {
  const { methods, files, call: door, serviceDomain, newRequestId, log } = options;
  const { maxMessageBytes = 4 * 1024 * 1024, maxListBytes = 64 * 1024 * 1024, maxConnectionMs = 3_600_000 } = options;
  // The library would print header values that it cannot parse, and one of them may be a token.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    // Each may hold a message that is not complete yet.
    'grpc.max_concurrent_streams': 100,
    'grpc.max_connection_idle_ms': maxConnectionMs / 12,
    'grpc.max_connection_age_ms': maxConnectionMs,
    'grpc.max_connection_age_grace_ms': maxConnectionMs / 60,
    'grpc.enable_channelz': 0,
  });

  for (const method of methods) {
    const { output } = method.desc;
    const newPages = soleListField(output) && (() => collectPages(output, maxListBytes));
    const handler = (call: UnaryCall, respond: sendUnaryData<Buffer>) => answer(method, call, respond, newPages?.());
    // Bytes pass through as they are: decoded here, malformed ones would be INTERNAL.
    if (!server.register(`/${method.id}`, handler, same, same, 'unary')) throw new Error(`${method.id} is there twice`);
  }
  addReflection(server, files);
  const health = addHealth(server, new Set(methods.map(({ id }) => id.slice(0, id.indexOf('/')))));
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());

  function answer(
    method: Method,
    call: UnaryCall,
    respond: sendUnaryData<Buffer>,
    pages: CollectedPages | undefined,
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
      const known = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the call failed');
      respond(failure(known, { domain: method.domain, serviceDomain, requestId }));
    };
    const send = (message: Message): void => {
      let response: Buffer;
      try {
        response = pages ? pages.end(message) : encode(method.desc.output, message);
        if (headers) call.sendMetadata(headers);
      } catch (error) {
        fail(error);
        return;
      }
      const trailer = new Metadata();
      trailer.set('x-request-id', requestId);
      respond(null, response, trailer);
    };
    let message: MaybePromise<Message>;
    try {
      message = door(incoming(method, call, requestId, cancellation, setHeader, pages?.add));
    } catch (error) {
      fail(error);
      return;
    }
    if (!(message instanceof Promise)) {
      send(message);
      return;
    }
    call.on('cancelled', cancellation.cancel);
    // It also fires after every answer.
    message.finally(() => call.off('cancelled', cancellation.cancel)).then(send, fail);
  }

  return {
    accept: connections.injectConnection,
    async stop(closed) {
      health.stop();
      // Its own word that all is over sometimes never comes, when a client leaves at this very moment.
      server.tryShutdown(() => {});
      await closed;
      server.forceShutdown();
    },
  };
}

const same = (bytes: Buffer): Buffer => bytes;

function incoming(
  method: Method,
  call: UnaryCall,
  requestId: string,
  cancellation: Cancellation,
  setHeader: (name: string, value: string) => void,
  sendPage: IncomingCall['sendPage'],
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
    sendPage,
    read: () => decode(method.desc.input, call.request),
  };
}

function decode(type: DescMessage, bytes: Buffer): Message {
  try {
    return fromBinary(type, bytes, { readUnknownFields: false });
  } catch {
    throw invalid('request', `must be a valid ${type.typeName} in protobuf encoding, with all text in UTF-8`);
  }
}

function encode(type: DescMessage, message: Message): Buffer {
  const bytes = cachedBytes(type, message) ?? toBinary(type, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const first = (metadata: Metadata, key: string): string | undefined => metadata.get(key)[0]?.toString();

function withoutPort(peer: string): string {
  const colon = peer.lastIndexOf(':');
  return colon < 0 ? peer : peer.slice(0, colon);
}
