import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
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
import { createMemoryBudget, type MemoryBudget } from '../../base/memory-budget.ts';
import { type Method, needsAuthentication } from '../../contract/method.ts';
import { soleListField } from '../../contract/streamed-list.ts';
import type { Dispatch, IncomingCall } from '../../pipeline/call.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import { type ClientAddress, type ForwardingHeaders, peerAddress } from '../forwarding.ts';
import type { ServeStream } from '../http2/http2-server.ts';
import type { ReadIncomingTrace } from '../incoming-trace.ts';
import { defaultLimits, type Limits } from '../limits.ts';
import { requestIdOf } from '../request-id.ts';
import { type CollectedList, collectList } from './collected-list.ts';
import { decodeRequest } from './decode-request.ts';
import { encodeMessage } from './encode-message.ts';
import { grpcStatusOf } from './error-metadata.ts';
import { addHealth } from './health.ts';
import { addReflection } from './reflection.ts';
import { guardRequests, type RequestRules } from './request-guard.ts';

export interface GrpcServerOptions {
  readonly methods: readonly Method[];
  readonly call: Dispatch;
  /** Throws if the caller who sent this `authorization` value cannot be authenticated. */
  readonly authenticate: (authorization: string | undefined, address: string) => MaybePromise<unknown>;
  /** Whether reflection works without a token. */
  readonly isReflectionPublic: boolean;
  /** The services that health checks know, besides those of `methods`. */
  readonly healthServices?: readonly string[];
  readonly limits?: Limits;
  /** Shared by all that reads requests which are not yet authenticated. */
  readonly unauthenticated?: MemoryBudget;
  /** The files that reflection returns. */
  readonly files: () => readonly DescFile[];
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** The limit for a request message. */
  readonly maxMessageBytes?: number;
  /** The limit for a response that is a list without pages. */
  readonly maxListBytes?: number;
  readonly clientAddress?: ClientAddress;
  /** Absent without tracing. */
  readonly incomingTrace?: ReadIncomingTrace | undefined;
  readonly log: Log;
}

export interface GrpcServer {
  /** Serves a request of an HTTP/2 connection. */
  readonly serve: ServeStream;
  /** Reports NOT_SERVING. Calls go on. */
  drain(): void;
  /** Frees all resources when all connections are `closed`. */
  stop(closed: Promise<void>): Promise<void>;
}

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

/** Serves every method of the table over gRPC, and also reflection and health checks. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { methods, files, call: dispatch, authenticate, serviceDomain, newRequestId, log } = options;
  const { limits = defaultLimits, unauthenticated = createMemoryBudget(limits.unauthenticatedBytes) } = options;
  const { maxMessageBytes = 4 * 1024 * 1024, maxListBytes = 64 * 1024 * 1024 } = options;
  const { clientAddress = peerAddress, incomingTrace } = options;
  /** Metadata is read only if the headers count. */
  const addressOf = (call: Pick<UnaryCall, 'getPeer' | 'metadata'>): string =>
    clientAddress(withoutPort(call.getPeer()), clientAddress === peerAddress ? {} : forwardingHeaders(call.metadata));
  // The library would print header values that it cannot parse, among them possibly a token.
  setLogVerbosity(logVerbosity.NONE);
  const newServer = (messageBytes: number): Server =>
    new Server({
      'grpc.max_receive_message_length': messageBytes,
      'grpc.enable_channelz': 0,
    });
  // Both get requests, but no connections: those belong to the HTTP/2 server, which serves REST too.
  const server = newServer(maxMessageBytes);
  // The library has one limit for all methods of a server.
  const publicServer = newServer(Math.min(maxMessageBytes, limits.publicRequestBytes));

  const methodsByPath = new Map<string, Method>();
  for (const method of methods) {
    const path = `/${method.id}`;
    methodsByPath.set(path, method);
    const { output } = method.desc;
    const newList = soleListField(output) && (() => collectList(output, maxListBytes));
    const handler = (call: UnaryCall, respond: sendUnaryData<Buffer>) => handle(method, call, respond, newList?.());
    // Requests are decoded later: with an error in a deserializer the library would respond INTERNAL.
    const methodServer = needsAuthentication(method) ? server : publicServer;
    if (!methodServer.register(path, handler, unchanged, unchanged, 'unary')) {
      throw new Error(`${method.id} is registered twice`);
    }
  }
  const reflectionPaths = addReflection(publicServer, files, {
    authorize: (call) =>
      options.isReflectionPublic ? undefined : authenticate(first(call.metadata, 'authorization'), addressOf(call)),
    statusOf: (error, requestId) => grpcStatusOf(error, { domain: undefined, serviceDomain, requestId }),
    newRequestId,
  });
  const services = methods.map(({ id }) => id.slice(0, id.indexOf('/')));
  const health = addHealth(publicServer, new Set([...services, ...(options.healthServices ?? [])]));
  const guard = guardRequests(streamListenerOf(server), streamListenerOf(publicServer), {
    ...{ limits, unauthenticated, maxMessageBytes },
    rulesOf(path) {
      const method = methodsByPath.get(path);
      if (method) return needsAuthentication(method) ? AUTHENTICATED : PUBLIC;
      return reflectionPaths.has(path) ? STREAM : PUBLIC;
    },
    authenticate: authenticateEarly,
    refuse: sendError,
  });

  /** Responds before the library has read the request. */
  function sendError(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, thrown: unknown): void {
    const requestId = requestIdOf((name) => headers[name]?.toString(), newRequestId);
    const domain = methodsByPath.get(headers[':path'] ?? '')?.domain;
    const error = asApiError(thrown, { requestId, method: headers[':path'] });
    const { code, details, metadata } = grpcStatusOf(error, { domain, serviceDomain, requestId });
    const status = { 'grpc-status': code, 'grpc-message': encodeURI(details) };
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc+proto', ...status, ...metadata.toHttp2Headers() },
      { endStream: true },
    );
  }

  const earlyAddressOf = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): string =>
    clientAddress(stream.session?.socket.remoteAddress ?? '', headers);

  /** Authenticates a caller before the library has read the request. */
  function authenticateEarly(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): MaybePromise<unknown> {
    try {
      const result = authenticate(headers.authorization, earlyAddressOf(stream, headers));
      return result instanceof Promise ? result.catch(() => failWithoutMessage(stream, headers)) : result;
    } catch {
      return failWithoutMessage(stream, headers);
    }
  }

  /** Runs the steps of a call that come before its message is read, so that it is logged and counted as any other. */
  function failWithoutMessage(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): MaybePromise<unknown> {
    const method = methodsByPath.get(headers[':path'] ?? '');
    if (method === undefined) throw new Error(`no method at ${headers[':path']}`);
    return dispatch({
      ...{ method, wire: 'grpc', authorization: headers.authorization },
      requestId: requestIdOf((name) => headers[name]?.toString(), newRequestId),
      peer: {
        address: earlyAddressOf(stream, headers),
        userAgent: headers['user-agent'] ?? '',
      },
      trace: incomingTrace?.(
        stream.session?.socket.remoteAddress ?? '',
        headers.traceparent?.toString(),
        headers.tracestate?.toString(),
      ),
      signal: createCancellation().signal,
      read() {
        throw new ApiError(Code.UNAVAILABLE, 'Unavailable: the caller could not be authenticated; try again');
      },
    });
  }

  function asApiError(error: unknown, fields: object): ApiError {
    if (error instanceof ApiError) return error;
    log.error({ error, ...fields }, 'call failed');
    return new ApiError(Code.INTERNAL, 'Internal: the call failed');
  }

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
      const apiError = asApiError(error, { requestId, method: method.id });
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
      const trace = incomingTrace?.(
        withoutPort(call.getPeer()),
        joined(call.metadata, 'traceparent'),
        joined(call.metadata, 'tracestate'),
      );
      const incoming = incomingCall(method, call, addressOf(call), requestId, cancellation, setHeader, list?.add);
      response = chain(dispatch(trace ? { ...incoming, trace } : incoming), encode);
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
    serve: guard.serve,
    drain: health.stop,
    async stop(closed) {
      health.stop();
      await closed;
      guard.stop();
      server.forceShutdown();
      publicServer.forceShutdown();
    },
  };
}

const unchanged = (bytes: Buffer): Buffer => bytes;

const AUTHENTICATED: RequestRules = { needsAuthentication: true, isStream: false };
const PUBLIC: RequestRules = { needsAuthentication: false, isStream: false };
const STREAM: RequestRules = { needsAuthentication: false, isStream: true };

/** What the library does with a request. It has no other way to pass one to it than a connection of its own. */
function streamListenerOf(server: Server): ServeStream {
  server.createConnectionInjector(ServerCredentials.createInsecure());
  const { http2Servers } = server as unknown as { readonly http2Servers?: ReadonlyMap<Http2Server, unknown> };
  const [http2Server] = http2Servers?.keys() ?? [];
  const [listener] = http2Server?.listeners('stream') ?? [];
  if (listener === undefined) throw new Error('this version of @grpc/grpc-js does not have http2Servers');
  return listener as ServeStream;
}

function incomingCall(
  method: Method,
  call: UnaryCall,
  address: string,
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
    peer: { address, userAgent: first(call.metadata, 'user-agent') ?? '' },
    signal: cancellation.signal,
    deadline: Number.isFinite(deadline) ? deadline : undefined,
    setHeader,
    sendPart,
    read: () => decodeRequest(method, call.request),
  };
}

const first = (metadata: Metadata, key: string): string | undefined => metadata.get(key)[0]?.toString();

/** Several entries of one name count as a list, as in HTTP. */
const joined = (metadata: Metadata, key: string): string | undefined => metadata.get(key).join(',') || undefined;

/** The headers of a call by which proxies tell what they know about its client. */
function forwardingHeaders(metadata: Metadata): ForwardingHeaders {
  return { forwarded: joined(metadata, 'forwarded'), 'x-forwarded-for': joined(metadata, 'x-forwarded-for') };
}

function withoutPort(peer: string): string {
  const colon = peer.lastIndexOf(':');
  return colon < 0 ? peer : peer.slice(0, colon);
}
