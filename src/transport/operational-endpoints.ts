import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../base/errors.ts';
import type { Metrics } from '../base/metrics.ts';

/** How long the database may take to prove that it is there. */
const READY_WITHIN_MS = 2000;

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface OpsOptions {
  /** Fails while requests cannot be served. Only the message of an ApiError is shown to the caller. */
  readonly ready: () => Promise<void>;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
}

/** What an operator's tools ask for: `/healthz`, `/readyz` and `/metrics`. The handler answers whether the path was its own. */
export function createOps({ ready, metrics }: OpsOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  const pages: ReadonlyMap<string, () => Promise<Answer>> = new Map([
    ['/healthz', async () => json(200, { status: 'ok' })],
    ['/readyz', () => readiness(ready)],
    ['/metrics', async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() })],
  ]);
  return (req, res) => {
    const page = pages.get((req.url ?? '').split('?', 1)[0] ?? '');
    if (!page) return false;
    if (req.method === 'GET' || req.method === 'HEAD') {
      page().then(
        (answer) => send(res, answer),
        () => send(res, json(500, { status: 'error' })),
      );
    } else {
      res.setHeader('allow', 'GET, HEAD');
      send(res, json(405, { status: 'error', reason: 'use GET or HEAD' }));
    }
    return true;
  };
}

async function readiness(ready: () => Promise<void>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, READY_WITHIN_MS, `the database did not answer within ${READY_WITHIN_MS / 1000} s`);
  });
  const trouble = await Promise.race([ready().then(() => undefined, reasonOf), tooLate]);
  clearTimeout(timer);
  return trouble === undefined ? json(200, { status: 'ok' }) : json(503, { status: 'unavailable', reason: trouble });
}

/** Other errors than ours may name hosts and users, which are nobody's business here. */
const reasonOf = (error: unknown): string =>
  error instanceof ApiError ? error.message : 'the database cannot be reached';

const json = (status: number, body: object): Answer => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(body)}\n`,
});

function send(res: ServerResponse, { status, contentType, body }: Answer): void {
  res.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  // Node leaves out the body of an answer to HEAD by itself.
  res.end(body);
}
