import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { ApiError, Code, notFound } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { encodeJson } from '../../contract/json/encode.ts';
import type { Method, Route, Verb } from '../../contract/method.ts';
import type { Call } from '../../pipeline/call.ts';
import { type Cancellation, createCancellation } from '../cancellation.ts';
import { requestIdOf } from '../request-id.ts';
import type { ErrorContext } from '../status.ts';
import { statusJson } from '../status.ts';
import { hasBody, readBody } from './body.ts';
import { createCors } from './cors.ts';
import { httpHead, wrongVerb } from './http-error.ts';
import { parseTarget } from './path.ts';
import { quotable } from './problems.ts';
import type { RequestReader } from './request.ts';
import { requestReader } from './request.ts';
import type { Found } from './router.ts';
import { createRouter } from './router.ts';

export interface RestOptions {
  readonly methods: readonly Method[];
  readonly call: Call;
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
  /** JSON; empty for no body at all. */
  readonly text: string;
}

/** Every method of the table over HTTP/1.1 and JSON. It answers any request, an unknown path too, and so comes last. */
export function createRest(options: RestOptions): (req: IncomingMessage, res: ServerResponse) => true {
  const { methods, call, serviceDomain, newRequestId, maxBodyBytes = 4 * 1024 * 1024, log } = options;
  const router = createRouter(methods);
  const cors = createCors(options.cors);
  const readers = new Map<Route, RequestReader>();
  for (const method of methods) {
    for (const route of method.routes) readers.set(route, requestReader(method, route));
  }

  async function answer(req: IncomingMessage, requestId: string, cancellation: Cancellation): Promise<Answer> {
    const { method: verb = '', headers } = req;
    let domain: string | undefined;
    try {
      const { path, query } = parseTarget(req.url ?? '');
      const match = router(verb === 'HEAD' ? 'GET' : verb, path);
      if (match.kind === 'nothing') throw notFound('path', quotable(path));
      if (match.kind === 'other verbs') {
        const allow = allowed(match.allow);
        if (verb !== 'OPTIONS') throw wrongVerb(verb, allow);
        return { status: 204, headers: { allow, ...cors.preflight(headers.origin, allow) }, text: '' };
      }
      domain = match.method.domain;
      return await perform(match, query, req, requestId, cancellation);
    } catch (error) {
      if (!(error instanceof ApiError)) log.error({ error, requestId }, 'request failed');
      const known = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the request failed');
      return failure(known, { domain, serviceDomain, requestId });
    }
  }

  async function perform(
    { method, route, variables }: Found,
    query: string,
    req: IncomingMessage,
    requestId: string,
    cancellation: Cancellation,
  ): Promise<Answer> {
    const read = readers.get(route);
    if (read === undefined) throw new Error(`${method.id} has no reader for ${route.template}`);
    const headers: OutgoingHttpHeaders = {};
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
      read: () =>
        hasBody(req)
          ? readBody(req, route, maxBodyBytes).then((body) => read({ variables, query, body }))
          : read({ variables, query, body: undefined }),
    });
    const isEmpty = method.desc.output.typeName === EmptySchema.typeName;
    return { status: 200, headers, text: isEmpty ? '' : encodeJson(method.desc.output, response) };
  }

  return (req, res) => {
    const requestId = requestIdOf((name) => req.headers[name]?.toString(), newRequestId);
    const cancellation = createCancellation();
    res.once('close', () => {
      if (!res.writableFinished) cancellation.cancel();
    });
    answer(req, requestId, cancellation).then(({ status, headers, text }) => {
      const head: OutgoingHttpHeaders = {
        'x-request-id': requestId,
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      };
      if (text !== '') head['content-type'] = 'application/json';
      // RFC 9110 section 8.6: none with 204.
      if (status !== 204) head['content-length'] = Buffer.byteLength(text);
      res.writeHead(status, Object.assign(head, cors.headers(req.headers.origin), headers));
      // Node leaves out the body of an answer to HEAD by itself.
      res.end(text);
    });
    return true;
  };
}

function failure(error: ApiError, context: ErrorContext): Answer {
  const { status, headers } = httpHead(error);
  return { status, headers, text: JSON.stringify(statusJson(error, context)) };
}

/** The verbs of a path, and those that come with them. */
const allowed = (verbs: readonly Verb[]): string =>
  [...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
