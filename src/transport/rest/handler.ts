import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { DescField } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { ApiError, Code, notFound } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import { encodeJsonLatin1, toLatin1 } from '../../contract/json/encode-latin1.ts';
import { encodeJsonLatin1InSlices } from '../../contract/json/encode-slices.ts';
import { quotable } from '../../contract/json/violations.ts';
import { isLarge } from '../../contract/large-message.ts';
import { type Method, needsAuthentication, type Route, type Verb } from '../../contract/method.ts';
import { soleListField, streamListJson } from '../../contract/streamed-list.ts';
import type { Dispatch } from '../../pipeline/call.ts';
import type { BodyTimeout } from '../body-timeout.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import type { ErrorContext } from '../error-status.ts';
import { statusJson } from '../error-status.ts';
import { type ClientAddress, peerAddress } from '../forwarding.ts';
import type { ReadIncomingTrace } from '../incoming-trace.ts';
import { defaultLimits, type Limits } from '../limits.ts';
import { requestIdOf } from '../request-id.ts';
import { type BodyLimits, hasBody, readBody } from './body.ts';
import { createCors } from './cors.ts';
import { httpHead, verbNotAllowed } from './http-error.ts';
import { streamListResponse } from './list-stream.ts';
import type { RequestReader } from './read-request.ts';
import { requestReader } from './read-request.ts';
import { parseTarget } from './request-target.ts';
import { createResponseBatch } from './response-batching.ts';
import type { MatchedRoute } from './router.ts';
import { createRouter } from './router.ts';

export interface RestOptions {
  readonly methods: readonly Method[];
  readonly call: Dispatch;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** The limit for a request body, before and after decompression. */
  readonly maxBodyBytes?: number;
  readonly limits?: Pick<Limits, 'publicRequestBytes' | 'publicRequestMs'>;
  /** For bodies whose senders are not authenticated. */
  readonly unauthenticated?: MemoryBudget;
  /** Web origins whose pages may call the API; `*` for all. */
  readonly cors: readonly string[];
  readonly clientAddress?: ClientAddress;
  /** Absent without tracing. */
  readonly incomingTrace?: ReadIncomingTrace | undefined;
  readonly log: Log;
}

interface RestResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  /** JSON as a Latin-1 string of its UTF-8 bytes; empty for a response without a body. */
  readonly body: string;
}

/** Serves every method of the table over HTTP/1.1 and JSON. It responds to any path, so it must be the last handler. */
export function createRestHandler(
  options: RestOptions,
): (req: IncomingMessage, res: ServerResponse, bodyTimeout?: BodyTimeout) => true {
  const { methods, call, serviceDomain, newRequestId, maxBodyBytes = 4 * 1024 * 1024, log } = options;
  const { publicRequestBytes, publicRequestMs } = options.limits ?? defaultLimits;
  const anyBody: BodyLimits = { maxBytes: maxBodyBytes };
  const publicBody: BodyLimits = {
    maxBytes: Math.min(maxBodyBytes, publicRequestBytes),
    budget: options.unauthenticated,
  };
  const { clientAddress = peerAddress, incomingTrace } = options;
  const router = createRouter(methods);
  const cors = createCors(options.cors);
  const sendInBatch = createResponseBatch();
  const readers = new Map<Route, RequestReader>();
  const lists = new Map<Method, DescField>();
  for (const method of methods) {
    const list = soleListField(method.desc.output);
    if (list) lists.set(method, list);
    for (const route of method.routes) readers.set(route, requestReader(method, route));
  }

  /** Returns undefined for a response that was streamed. */
  async function respond(
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    cancellation: Cancellation,
    bodyTimeout: BodyTimeout | undefined,
  ): Promise<RestResponse | undefined> {
    const { method: verb = '', headers } = req;
    let domain: string | undefined;
    try {
      const { path, query } = parseTarget(req.url ?? '');
      const match = router(verb === 'HEAD' ? 'GET' : verb, path);
      if (match.kind === 'no match') throw notFound('path', quotable(path));
      if (match.kind === 'verb not allowed') {
        const allow = allowHeader(match.allow);
        if (verb !== 'OPTIONS') throw verbNotAllowed(verb, allow);
        return { status: 204, headers: { allow, ...cors.preflight(headers.origin, allow) }, body: '' };
      }
      domain = match.method.domain;
      return await callMethod(match, query, req, res, requestId, cancellation, bodyTimeout);
    } catch (error) {
      if (!(error instanceof ApiError)) log.error({ error, requestId }, 'request failed');
      const apiError = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the request failed');
      if (!res.headersSent) return errorResponse(apiError, { domain, serviceDomain, requestId });
      // The status is already sent. Closing the connection tells the client that the response is incomplete.
      if (!res.destroyed) {
        log.warn({ requestId, reason: apiError.message }, 'response cut off');
        res.destroy();
      }
      return undefined;
    }
  }

  async function callMethod(
    { method, route, variables }: MatchedRoute,
    query: string,
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    cancellation: Cancellation,
    bodyTimeout: BodyTimeout | undefined,
  ): Promise<RestResponse | undefined> {
    const read = readers.get(route);
    if (read === undefined) throw new Error(`${method.id} has no reader for ${route.template}`);
    const headers: OutgoingHttpHeaders = {};
    const list = lists.get(method);
    const { output } = method.desc;
    const form = method.isV1 ? 'v1' : 'v2';
    const stream =
      list && streamListResponse(res, streamListJson(output, list, form), () => commonHeaders(req, requestId));
    const response = await call({
      method,
      wire: 'rest',
      authorization: req.headers.authorization,
      requestId,
      peer: {
        address: clientAddress(req.socket.remoteAddress ?? '', req.headers),
        userAgent: req.headers['user-agent'] ?? '',
      },
      route,
      trace: incomingTrace?.(
        req.socket.remoteAddress ?? '',
        req.headers.traceparent?.toString(),
        req.headers.tracestate?.toString(),
      ),
      signal: cancellation.signal,
      setHeader(name, value) {
        headers[name] = value;
      },
      sendPart: stream?.send,
      read() {
        if (!hasBody(req)) return read({ variables, query, body: undefined });
        const isPublic = !needsAuthentication(method);
        if (isPublic) bodyTimeout?.shorten(publicRequestMs);
        return readBody(req, route, isPublic ? publicBody : anyBody).then((body) => read({ variables, query, body }));
      },
    });
    if (stream && res.headersSent) {
      await stream.end(response);
      return undefined;
    }
    const isEmpty = output.typeName === EmptySchema.typeName;
    // v1 sends `{}`, as grpc-gateway does.
    if (isEmpty && !method.isV1) return { status: 200, headers, body: '' };
    const body = isLarge(output, response)
      ? await encodeJsonLatin1InSlices(output, response, form)
      : encodeJsonLatin1(output, response, form);
    return { status: 200, headers, body };
  }

  /** The headers of every response. */
  function commonHeaders(req: IncomingMessage, requestId: string): OutgoingHttpHeaders {
    const head = { 'x-request-id': requestId, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
    return Object.assign(head, cors.headers(req.headers.origin));
  }

  return (req, res, bodyTimeout) => {
    const requestId = requestIdOf((name) => req.headers[name]?.toString(), newRequestId);
    const cancellation = createCancellation();
    res.once('close', () => {
      if (!res.writableFinished) cancellation.cancel();
    });
    respond(req, res, requestId, cancellation, bodyTimeout).then((response) => {
      if (!response) return;
      const { status, headers, body } = response;
      const head = commonHeaders(req, requestId);
      if (body !== '') head['content-type'] = 'application/json';
      // RFC 9110 section 8.6: a 204 has no content-length.
      if (status !== 204) head['content-length'] = body.length;
      Object.assign(head, headers);
      sendInBatch(() => {
        // Node omits the body of a response to HEAD.
        res.writeHead(status, head).end(body, 'latin1');
      });
    });
    return true;
  };
}

function errorResponse(error: ApiError, context: ErrorContext): RestResponse {
  const { status, headers } = httpHead(error);
  return { status, headers, body: toLatin1(JSON.stringify(statusJson(error, context))) };
}

/** The value of the Allow header: HEAD and OPTIONS are added to the verbs of the routes. */
const allowHeader = (verbs: readonly Verb[]): string =>
  [...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
