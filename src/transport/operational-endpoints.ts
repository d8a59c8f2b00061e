import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../base/errors.ts';
import type { Metrics } from '../base/metrics.ts';

/** How long the readiness check waits for the database. */
const READINESS_TIMEOUT_MS = 2000;

interface EndpointResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface OperationalEndpointsOptions {
  /** Rejects while requests cannot be served. Only the message of an ApiError is sent to the client. */
  readonly ready: () => Promise<void>;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
}

/** Serves `/healthz`, `/readyz` and `/metrics`. The handler returns false for any other path. */
export function createOperationalEndpoints({
  ready,
  metrics,
}: OperationalEndpointsOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  const endpoints: ReadonlyMap<string, () => Promise<EndpointResponse>> = new Map([
    ['/healthz', async () => json(200, { status: 'ok' })],
    ['/readyz', () => readiness(ready)],
    ['/metrics', async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() })],
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

async function readiness(ready: () => Promise<void>): Promise<EndpointResponse> {
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
  return problem === undefined ? json(200, { status: 'ok' }) : json(503, { status: 'unavailable', reason: problem });
}

/** The message of any other error may contain host and user names, which must not become public. */
const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? error.message : 'the database cannot be reached';

const json = (status: number, body: object): EndpointResponse => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(body)}\n`,
});

function send(res: ServerResponse, { status, contentType, body }: EndpointResponse): void {
  res.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  // Node omits the body of a response to HEAD.
  res.end(body);
}
