import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Challenges } from '../auth/challenge.ts';
import type { Credential, ReadCredential } from '../auth/credentials.ts';
import { readForm } from '../auth/token-form.ts';
import { asOciError, codeNameOf, errorBody, OciError } from '../errors.ts';
import { segmentsOf } from '../names.ts';
import type { Answer, Arrival, Call } from './call.ts';
import { isRegistryPath, type Route, type RouteOf, routeOf } from './routes.ts';
import { send } from './send.ts';

/** Handlers by kind of route and HTTP method. HEAD is done as GET where it has no handler of its own. */
export type Handlers = {
  readonly [K in Route['kind']]: Readonly<Record<string, Handle<RouteOf<K>>>>;
};
type Handle<R> = (call: Call, route: R) => Promise<Answer>;

export interface HandlerOptions {
  readonly handlers: Handlers;
  readonly readCredential: ReadCredential;
  readonly challenges: Challenges;
  readonly requestIdOf: (req: IncomingMessage) => string;
  /** How long a client may take nothing of an answer. */
  readonly stallMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observeRequest' | 'inFlight'>;
}

/** Answers whether the path was its own. */
export type Handler = (req: IncomingMessage, res: ServerResponse, arrival: Arrival) => boolean;

/** The front door: finds the handler, finds out who is calling, and puts every refusal into OCI's words. */
export function createHandler(options: HandlerOptions): Handler {
  const { handlers, readCredential, challenges, requestIdOf, stallMs, clock, log, metrics } = options;

  async function perform(req: IncomingMessage, route: Route | undefined, arrival: Arrival): Promise<Answer> {
    if (!route) throw new OciError('UNSUPPORTED', 'there is nothing at this path', { status: 404 });
    const handle = handlerOf(route, req.method ?? '');
    if ('name' in route) segmentsOf(route.name);
    const isForm = route.kind === 'token' && req.method === 'POST';
    const { authorization, query } = isForm ? await readForm(req) : readUrl(req);
    const credential = await identify(authorization, () => challenges.at(route, req.method ?? '', query));
    return handle({ req, query, credential, now: clock(), arrival }, route);
  }

  function handlerOf(route: Route, verb: string): Handle<Route> {
    const byVerb = handlers[route.kind] as Readonly<Record<string, Handle<Route>>>;
    const handle = byVerb[verb] ?? (verb === 'HEAD' ? byVerb.GET : undefined);
    if (handle) return handle;
    const allow = [...Object.keys(byVerb), ...(byVerb.GET && !byVerb.HEAD ? ['HEAD'] : [])].join(', ');
    throw new OciError('UNSUPPORTED', `this path takes ${allow || 'nothing'}`, { headers: { allow } });
  }

  /** Without a good token, the answer says where to get one. */
  async function identify(authorization: string | undefined, challenge: () => string): Promise<Credential> {
    try {
      return await readCredential(authorization);
    } catch (thrown) {
      const error = asOciError(thrown);
      if (error.status !== 401) throw thrown;
      throw new OciError(error.code, error.message, { headers: { 'www-authenticate': challenge() } });
    }
  }

  async function serve(req: IncomingMessage, res: ServerResponse, path: string, arrival: Arrival): Promise<void> {
    const started = performance.now();
    const requestId = requestIdOf(req);
    const route = routeOf(path);
    const peer = req.socket.remoteAddress ?? '';
    metrics.inFlight.enter();
    const answer = await perform(req, route, arrival).catch((thrown: unknown) => {
      const error = asOciError(thrown);
      if (error.status >= 500) log.error({ requestId, error: thrown }, 'call failed');
      return refusal(error);
    });
    // What nobody wants any more is thrown away as it comes: closing now would reset the connection before its client reads why.
    if (!req.complete) req.resume();
    const headers = { ...ALWAYS, 'x-request-id': requestId, ...answer.headers };
    const got = await send(res, { ...answer, headers }, stallMs).then(
      () => true,
      () => false,
    );
    if (got) answer.sent?.();
    metrics.inFlight.leave();
    report(req, { route, requestId, peer }, got ? answer.status : 408, (performance.now() - started) / 1000);
  }

  /** As for calls of the API: changes and refusals are worth a line each, the rest only when somebody is looking. */
  function report(req: IncomingMessage, facts: Facts, status: number, seconds: number): void {
    const { route, requestId, peer } = facts;
    const method = `oci/${route?.kind ?? 'nothing'}.${(req.method ?? '').toLowerCase()}`;
    const code = codeNameOf(status);
    metrics.observeRequest(method, 'oci', code, seconds);
    const ms = Math.round(seconds * 1e6) / 1000;
    const repository = route && 'name' in route ? route.name : undefined;
    log[isRoutine(req, status) ? 'debug' : 'info'](
      { requestId, method, wire: 'oci', code, ms, peer, ...(repository && { repository }) },
      'call',
    );
  }

  return (req, res, arrival) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    if (!isRegistryPath(path)) return false;
    void serve(req, res, path, arrival);
    return true;
  };
}

interface Facts {
  readonly route: Route | undefined;
  readonly requestId: string;
  readonly peer: string;
}

/** Clients ask without a token first, and whether something is there before they push it. */
function isRoutine({ method, headers }: IncomingMessage, status: number): boolean {
  if (status === 401) return headers.authorization === undefined;
  if (method === 'HEAD') return status < 400 || status === 404;
  return method === 'GET' && status < 400;
}

const ALWAYS = { 'docker-distribution-api-version': 'registry/2.0', 'x-content-type-options': 'nosniff' };

function readUrl({ url = '', headers }: IncomingMessage) {
  const cut = url.indexOf('?');
  return { authorization: headers.authorization, query: new URLSearchParams(cut < 0 ? '' : url.slice(cut + 1)) };
}

const refusal = (error: OciError): Answer => ({
  status: error.status,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...error.headers },
  body: errorBody(error),
});
