import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../base/errors.ts';
import type { Metrics } from '../base/metrics.ts';
import { shareResult } from '../base/share-result.ts';
import { commit, version } from '../base/version.ts';

/** How long the readiness check waits for the database. */
const READINESS_TIMEOUT_MS = 2000;

/** The age of the metrics that are sent. Collecting them takes some milliseconds. */
export const METRICS_AGE_MS = 1000;

interface EndpointResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface OperationalEndpointsOptions {
  /** Rejects while requests cannot be served. Only the message of an ApiError is sent to the client. */
  readonly ready: () => Promise<void>;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  /**
   * Whether clients without a token may read the metrics, and why the server is not ready. If not, `/metrics` says where
   * to find them.
   */
  readonly showDetails: boolean;
}

/** Serves `/healthz`, `/readyz`, `/version` and `/metrics`. The handler returns false for any other path. */
export function createOperationalEndpoints({
  ready,
  metrics,
  showDetails,
}: OperationalEndpointsOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  // Shared, so that no number of requests can make the server collect or encode them more often.
  const metricsResponse = shareResult(
    async () => ({ status: 200, contentType: metrics.contentType, body: Buffer.from(await metrics.text()) }),
    METRICS_AGE_MS,
  );
  const readyResponse = shareResult(() => readiness(ready, showDetails), 0);
  const endpoints: ReadonlyMap<string, () => Promise<EndpointResponse>> = new Map([
    ['/healthz', async () => HEALTHY],
    ['/readyz', readyResponse],
    ['/version', async () => VERSION],
    ['/metrics', showDetails ? metricsResponse : async () => METRICS_ELSEWHERE],
  ]);
  return (req, res) => {
    const endpoint = endpoints.get((req.url ?? '').split('?', 1)[0] ?? '');
    if (!endpoint) return false;
    if (req.method === 'GET' || req.method === 'HEAD') {
      endpoint().then(
        (response) => send(res, response),
        () => send(res, json(500, { status: 'error' })),
      );
    } else {
      res.setHeader('allow', 'GET, HEAD');
      send(res, json(405, { status: 'error', reason: 'use GET or HEAD' }));
    }
    return true;
  };
}

async function readiness(ready: () => Promise<void>, showDetails: boolean): Promise<EndpointResponse> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(
      resolve,
      READINESS_TIMEOUT_MS,
      `the database did not respond within ${READINESS_TIMEOUT_MS / 1000} s`,
    );
  });
  const problem = await Promise.race([ready().then(() => undefined, reasonOf), timeout]);
  clearTimeout(timer);
  if (problem === undefined) return HEALTHY;
  return json(503, { status: 'unavailable', ...(showDetails && { reason: problem }) });
}

/** The message of any other error may contain host and user names, which must not become public. */
const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? error.message : 'the database cannot be reached';

const json = (status: number, body: object): EndpointResponse => ({
  status,
  contentType: 'application/json',
  body: Buffer.from(`${JSON.stringify(body)}\n`),
});

const HEALTHY = json(200, { status: 'ok' });

const VERSION = json(200, { version, commit });

const METRICS_ELSEWHERE = json(404, {
  status: 'error',
  reason:
    'a server that other machines can reach does not serve metrics on this port; ' +
    'set WHARF_OPERATIONS_LISTEN to an address such as 127.0.0.1:9090 and read them there',
});

function send(res: ServerResponse, { status, contentType, body }: EndpointResponse): void {
  res.writeHead(status, {
    'content-type': contentType,
    'content-length': body.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  // Node omits the body of a response to HEAD.
  res.end(body);
}
