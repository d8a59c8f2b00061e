import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { runInSlices } from '../../base/run-in-slices.ts';
import type { Method } from '../../contract/method.ts';

const gzip = promisify(gzipCallback);

export interface DocsHandlerOptions {
  readonly methods: readonly Method[];
  readonly version: string;
  /** The URL of this server, or a path if clients use different hosts: it is relative to the URL of the document. */
  readonly serviceUrl: string;
  /** The path below which a proxy serves this server, such as `/wharf`, or an empty text. */
  readonly pathPrefix?: string;
}

interface Resource {
  readonly plain: Buffer;
  readonly gzip: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Serves `/openapi.json` and the API page at `/docs`. Returns false for any other path. */
export function createDocsHandler({
  methods,
  version,
  serviceUrl,
  pathPrefix = '',
}: DocsHandlerOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  // The code is loaded on the first request, because most servers never receive one.
  const document = lazy(async () => {
    const { openapiSteps } = await import('./document.ts');
    const description = await runInSlices(openapiSteps(methods, { serverUrl: serviceUrl, version }));
    return resource(JSON.stringify(description), {
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': '*',
    });
  });
  const page = lazy(async () => {
    const { assemblePage } = await import('../docs/page.ts');
    const { html, contentSecurityPolicy } = assemblePage(pathPrefix);
    return resource(html, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
    });
  });

  return (req, res) => {
    switch (req.url?.split('?', 1)[0]) {
      case '/openapi.json':
        void document().then((resource) => sendResource(req, res, resource));
        return true;
      case '/docs':
      case '/docs/':
        void page().then((resource) => sendResource(req, res, resource));
        return true;
      default:
        return false;
    }
  };
}

/** Builds a resource on the first request. */
function lazy(build: () => Promise<Resource>): () => Promise<Resource> {
  let built: Promise<Resource> | undefined;
  return () => {
    built ??= build();
    return built;
  };
}

async function resource(text: string, headers: Record<string, string>): Promise<Resource> {
  const plain = Buffer.from(text);
  // A tag for both encodings must be weak; RFC 9110, section 8.8.1.
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return {
    plain,
    gzip: await gzip(plain),
    etag,
    headers: {
      ...headers,
      'cache-control': 'no-cache',
      etag,
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    },
  };
}

function sendResource(req: IncomingMessage, res: ServerResponse, { plain, gzip, etag, headers }: Resource): void {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.writeHead(405, {
      allow: 'GET, HEAD',
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
    });
    res.end('{"status":"error","reason":"use GET or HEAD"}\n');
    return;
  }
  if (isCurrent(req.headers['if-none-match'], etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  const zipped = acceptsGzip(req.headers['accept-encoding']);
  const body = zipped ? gzip : plain;
  res.writeHead(200, { ...headers, 'content-length': body.length, ...(zipped && { 'content-encoding': 'gzip' }) });
  res.end(body); // Node omits the body of a response to HEAD
}

/** If-None-Match compares weakly; RFC 9110, section 13.1.2. */
const isCurrent = (ifNoneMatch = '', etag: string): boolean =>
  ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^(?!W\/)/, 'W/') === etag);

/** `gzip` or `*`, unless its weight is zero. */
const acceptsGzip = (acceptEncoding: string | string[] = ''): boolean =>
  String(acceptEncoding)
    .split(',')
    .some((entry) => /^\s*(gzip|x-gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(entry));
