import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { DescField } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { ApiError, Code, notFound } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { encodeJsonLatin1, toLatin1 } from '../../contract/json/encode.ts';
import { quotable } from '../../contract/json/violations.ts';
import type { Method, Route, Verb } from '../../contract/method.ts';
import { soleListField } from '../../contract/streamed-list.ts';
import type { Dispatch } from '../../pipeline/call.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import type { ErrorContext } from '../error-status.ts';
import { statusJson } from '../error-status.ts';
import { requestIdOf } from '../request-id.ts';
import { hasBody, readBody } from './body.ts';
import { createCors } from './cors.ts';
import { httpHead, wrongVerb } from './http-error.ts';
import { createPageStream } from './list-stream.ts';
import type { RequestReader } from './read-request.ts';
import { requestReader } from './read-request.ts';
import { parseTarget } from './request-target.ts';
import { createDepartures } from './response-batching.ts';
import type { Found } from './router.ts';
import { createRouter } from './router.ts';

export interface RestOptions {
  readonly methods: readonly Method[];
  readonly call: Dispatch;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** Of a request, packed and unpacked. */
  readonly maxBodyBytes?: number;
  /** Web origins whose pages may call us; `*` for all. */
  readonly cors: readonly string[];
  readonly log: Log;
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  /** JSON in UTF-8, a character for each byte; empty for no body at all. */
  readonly octets: string;
}

/** Every method of the table over HTTP/1.1 and JSON. It answers any request, an unknown path too, and so comes last. */
export function createRest(options: RestOptions): (req: IncomingMessage, res: ServerResponse) => true {
  const { methods, call, serviceDomain, newRequestId, maxBodyBytes = 4 * 1024 * 1024, log } = options;
  const router = createRouter(methods);
  const cors = createCors(options.cors);
  const leaveTogether = createDepartures();
  const readers = new Map<Route, RequestReader>();
  const lists = new Map<Method, DescField>();
  for (const method of methods) {
    const list = soleListField(method.desc.output);
    if (list) lists.set(method, list);
    for (const route of method.routes) readers.set(route, requestReader(method, route));
  }

  /** Nothing for an answer that is on its way already. */
  async function answer(
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    cancellation: Cancellation,
  ): Promise<Answer | undefined> {
    const { method: verb = '', headers } = req;
    let domain: string | undefined;
    try {
      const { path, query } = parseTarget(req.url ?? '');
      const match = router(verb === 'HEAD' ? 'GET' : verb, path);
      if (match.kind === 'nothing') throw notFound('path', quotable(path));
      if (match.kind === 'other verbs') {
        const allow = allowed(match.allow);
        if (verb !== 'OPTIONS') throw wrongVerb(verb, allow);
        return { status: 204, headers: { allow, ...cors.preflight(headers.origin, allow) }, octets: '' };
      }
      domain = match.method.domain;
      return await perform(match, query, req, res, requestId, cancellation);
    } catch (error) {
      if (!(error instanceof ApiError)) log.error({ error, requestId }, 'request failed');
      const known = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the request failed');
      if (!res.headersSent) return failure(known, { domain, serviceDomain, requestId });
      // Too late for a status: cut off, the answer cannot pass for a whole one.
      if (!res.destroyed) {
        log.warn({ requestId, reason: known.message }, 'answer cut off');
        res.destroy();
      }
      return undefined;
    }
  }

  async function perform(
    { method, route, variables }: Found,
    query: string,
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    cancellation: Cancellation,
  ): Promise<Answer | undefined> {
    const read = readers.get(route);
    if (read === undefined) throw new Error(`${method.id} has no reader for ${route.template}`);
    const headers: OutgoingHttpHeaders = {};
    const list = lists.get(method);
    const stream = list && createPageStream(res, method.desc.output, list, () => headOf(req, requestId));
    const response = await call({
      method,
      wire: 'rest',
      authorization: req.headers.authorization,
      requestId,
      peer: { address: req.socket.remoteAddress ?? '', userAgent: req.headers['user-agent'] ?? '' },
      signal: cancellation.signal,
      setHeader(name, value) {
        headers[name] = value;
      },
      sendPage: stream?.send,
      read: () =>
        hasBody(req)
          ? readBody(req, route, maxBodyBytes).then((body) => read({ variables, query, body }))
          : read({ variables, query, body: undefined }),
    });
    if (stream && res.headersSent) {
      stream.end(response);
      return undefined;
    }
    const isEmpty = method.desc.output.typeName === EmptySchema.typeName;
    return { status: 200, headers, octets: isEmpty ? '' : encodeJsonLatin1(method.desc.output, response) };
  }

  /** What every answer begins with. */
  function headOf(req: IncomingMessage, requestId: string): OutgoingHttpHeaders {
    const head = { 'x-request-id': requestId, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
    return Object.assign(head, cors.headers(req.headers.origin));
  }

  return (req, res) => {
    const requestId = requestIdOf((name) => req.headers[name]?.toString(), newRequestId);
    const cancellation = createCancellation();
    res.once('close', () => {
      if (!res.writableFinished) cancellation.cancel();
    });
    answer(req, res, requestId, cancellation).then((answered) => {
      if (!answered) return;
      const { status, headers, octets } = answered;
      const head = headOf(req, requestId);
      if (octets !== '') head['content-type'] = 'application/json';
      // RFC 9110 section 8.6: none with 204.
      if (status !== 204) head['content-length'] = octets.length;
      Object.assign(head, headers);
      leaveTogether(() => {
        // Node leaves out the body of an answer to HEAD by itself.
        res.writeHead(status, head).end(octets, 'latin1');
      });
    });
    return true;
  };
}

function failure(error: ApiError, context: ErrorContext): Answer {
  const { status, headers } = httpHead(error);
  return { status, headers, octets: toLatin1(JSON.stringify(statusJson(error, context))) };
}

/** The verbs of a path, and those that come with them. */
const allowed = (verbs: readonly Verb[]): string =>
  [...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
