import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import { termsNotAccepted } from '../../base/errors.ts';
import type { IncomingTrace } from '../../base/tracing.ts';
import type { Method } from '../../contract/method.ts';
import type { RequestRates } from '../../limits/request-rates.ts';
import type { CallObserver, ObservedCall } from '../../pipeline/observe.ts';
import type { Reader } from '../../store/store.ts';
import type { Challenges } from '../auth/challenge.ts';
import type { Credential, ReadCredential } from '../auth/credentials.ts';
import { organizationsOf } from '../auth/organizations.ts';
import { type FormLimits, readForm } from '../auth/token-form.ts';
import { asOciError, codeOf, errorBody, OciError } from '../errors.ts';
import { segmentsOf } from '../names.ts';
import type { BodyTimeout, OciCall, OciResponse } from './call.ts';
import { isRegistryPath, type Route, type RouteOf, routeOf } from './routes.ts';
import { send } from './send.ts';

/** The methods of the contract by route and HTTP verb. HEAD is served as GET where it has no endpoint of its own. */
export type Endpoints = {
  readonly [K in Route['kind']]: Readonly<Record<string, Endpoint<RouteOf<K>>>>;
};

export interface Endpoint<R> {
  readonly method: Method;
  handle(call: OciCall, route: R): Promise<OciResponse>;
}

export interface HandlerOptions {
  readonly endpoints: Endpoints;
  readonly db: Reader;
  readonly readCredential: ReadCredential;
  readonly challenges: Challenges;
  readonly requestIdOf: (req: IncomingMessage) => string;
  readonly addressOf: (req: IncomingMessage) => string;
  /** The path of the request before `/v2/`, such as `/wharf`, or an empty text. */
  readonly pathPrefixOf: (req: IncomingMessage) => string;
  /** The trace that a request is part of. Absent without tracing. */
  readonly traceOf?: ((req: IncomingMessage) => IncomingTrace | undefined) | undefined;
  /** How long a client may read nothing of a response. */
  readonly stallMs: number;
  readonly formLimits: FormLimits;
  readonly clock: Clock;
  readonly observer: CallObserver;
  readonly rates: RequestRates;
}

/** Returns whether the path is one of the registry. */
export type Handler = (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => boolean;

/** What log and metrics show for a path that no method of the contract serves. */
const UNKNOWN_METHOD: Pick<Method, 'id' | 'routes'> = { id: 'oci/unknown', routes: [] };

/** Serves the registry paths: finds the endpoint, authenticates the caller, and turns every error into an OCI error. */
export function createHandler(options: HandlerOptions): Handler {
  const { endpoints, db, readCredential, challenges, requestIdOf, addressOf, pathPrefixOf } = options;
  const { stallMs, formLimits, clock, observer, rates } = options;

  function find(route: Route | undefined, verb: string): Endpoint<Route> | undefined {
    if (!route) return undefined;
    const byVerb = endpoints[route.kind] as Readonly<Record<string, Endpoint<Route>>>;
    return byVerb[verb] ?? (verb === 'HEAD' ? byVerb.GET : undefined);
  }

  async function run(
    req: IncomingMessage,
    address: string,
    route: Route | undefined,
    endpoint: Endpoint<Route> | undefined,
    bodyTimeout: BodyTimeout,
  ): Promise<OciResponse> {
    if (!route) throw new OciError('UNSUPPORTED', 'the registry has no such path', { status: 404 });
    if (!endpoint) throw wrongVerb(Object.keys(endpoints[route.kind]));
    if ('name' in route) segmentsOf(route.name);
    const verb = req.method ?? '';
    const isForm = route.kind === 'token' && verb === 'POST';
    const { authorization, query } = isForm ? await readForm(req, bodyTimeout, formLimits) : readUrl(req);
    const credential = await identify(authorization, address, route, query, () =>
      challenges.at(req, route, verb, query),
    );
    rates.countIdentity(credential.caller.uid);
    observer.identified?.(credential.caller.uid);
    await requireTerms(credential, route, query);
    const { method } = endpoint;
    const call = { method, ...credential, authorization, now: clock(), db, req, address, query, bodyTimeout };
    return endpoint.handle(call, route);
  }

  /** Refuses pulls, pushes and tokens for repositories of an organization whose documents the person has not accepted. */
  async function requireTerms({ caller: { terms } }: Credential, route: Route, query: URLSearchParams): Promise<void> {
    if (!terms || terms.missing.size === 0) return;
    const organization = (await organizationsOf(db, route, query)).find((uid) => terms.missing.has(uid));
    if (organization === undefined) return;
    const { message } = termsNotAccepted(organization, terms.missing.get(organization) ?? [], terms.urls, 'v2');
    throw new OciError('DENIED', message);
  }

  /** Without a valid token, the response says where to get one. */
  async function identify(
    authorization: string | undefined,
    address: string,
    route: Route,
    query: URLSearchParams,
    challenge: () => string,
  ): Promise<Credential> {
    try {
      const credential = await readCredential(authorization, address);
      const { forRequest } = credential.caller;
      // Any valid token may ask for the version, and it concerns no organization.
      if (!forRequest || route.kind === 'version') return credential;
      return { ...credential, caller: await forRequest(await organizationsOf(db, route, query)) };
    } catch (thrown) {
      const error = asOciError(thrown);
      if (error.status !== 401) throw thrown;
      rates.requireAttempt(address);
      rates.countFailure(address, authorization !== undefined);
      throw new OciError(error.code, error.message, { headers: { 'www-authenticate': challenge() } });
    }
  }

  async function serve(req: IncomingMessage, res: ServerResponse, path: string, bodyTimeout: BodyTimeout) {
    const requestId = requestIdOf(req);
    const address = addressOf(req);
    const route = routeOf(path);
    const endpoint = find(route, req.method ?? '');
    const call = { method: endpoint?.method ?? UNKNOWN_METHOD, wire: 'oci' as const, requestId, peer: { address } };
    const work = (): Promise<void> => respond(req, res, call, route, endpoint, bodyTimeout);
    if (!observer.trace) return work();
    return observer.trace({ ...call, route: httpRoute(req, call.method), trace: options.traceOf?.(req) }, work);
  }

  async function respond(
    req: IncomingMessage,
    res: ServerResponse,
    call: ObservedCall,
    route: Route | undefined,
    endpoint: Endpoint<Route> | undefined,
    bodyTimeout: BodyTimeout,
  ): Promise<void> {
    const started = observer.begin();
    const { requestId } = call;
    const { address } = call.peer;
    let cause: unknown;
    const response = await run(req, address, route, endpoint, bodyTimeout).catch((thrown: unknown) => {
      const error = asOciError(thrown);
      if (error.status >= 500) cause = thrown;
      return errorResponse(error);
    });
    // The rest of the body is read and dropped. Closing now would reset the connection before the client reads the error.
    if (!req.complete) req.resume();
    const headers = { ...ALWAYS, 'x-request-id': requestId, ...withPrefix(response.headers, pathPrefixOf(req)) };
    const isSent = await send(res, { ...response, headers }, stallMs).then(
      () => true,
      () => false,
    );
    if (isSent) response.sent?.();
    const status = isSent ? response.status : 408;
    const repository = route && 'name' in route ? { repository: route.name } : {};
    const fields = repository;
    observer.end(call, codeOf(status), started, { cause, isRoutine: isRoutine(req, status), status, fields });
  }

  return (req, res, bodyTimeout) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    if (!isRegistryPath(path)) return false;
    void serve(req, res, path, bodyTimeout);
    return true;
  };
}

/** Adds the path prefix of a request to the links in the headers of its response. */
function withPrefix(headers: OciResponse['headers'], prefix: string): OciResponse['headers'] {
  if (prefix === '' || headers === undefined) return headers;
  const { location, link } = headers;
  return {
    ...headers,
    ...(location !== undefined && { location: `${prefix}${location}` }),
    ...(link !== undefined && { link: String(link).replace(/^</, `<${prefix}`) }),
  };
}

/** The template of the contract, because paths contain upload ids. */
function httpRoute({ method: verb = '' }: IncomingMessage, { routes }: Pick<Method, 'routes'>) {
  const route = routes.find((candidate) => candidate.verb === verb) ?? routes[0];
  return { verb, template: route?.template ?? '' };
}

function wrongVerb(verbs: readonly string[]): OciError {
  const allow = [...verbs, ...(verbs.includes('GET') && !verbs.includes('HEAD') ? ['HEAD'] : [])].join(', ');
  return new OciError('UNSUPPORTED', `this path takes ${allow}`, { headers: { allow } });
}

/** Clients first send a request without a token, and ask with HEAD whether something exists before they push it. */
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

const errorResponse = (error: OciError): OciResponse => ({
  status: error.status,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...error.headers },
  body: errorBody(error),
});
