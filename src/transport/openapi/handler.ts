import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { Method } from '../../contract/method.ts';

export interface DocsDependencies {
  readonly methods: readonly Method[];
  readonly version: string;
  /** Where clients reach this server; asked anew for each request, as the port is known only once it listens. */
  readonly serviceUrl: () => string;
}

interface Resource {
  readonly plain: Buffer;
  readonly gzip: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Serves `/openapi.json` and the API page at `/docs`. Answers false, having done nothing, for any other path. */
export function createDocs({
  methods,
  version,
  serviceUrl,
}: DocsDependencies): (req: IncomingMessage, res: ServerResponse) => boolean {
  // What describes the API is loaded when somebody asks, which on most servers nobody does.
  const documentFor = cached(async (serverUrl) => {
    const { openapi } = await import('./document.ts');
    return resource(JSON.stringify(openapi(methods, { serverUrl, version })), {
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': '*',
    });
  });
  const page = cached(async () => {
    const { assemblePage } = await import('../docs/page.ts');
    const { html, contentSecurityPolicy } = assemblePage();
    return resource(html, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
    });
  });

  return (req, res) => {
    switch (req.url?.split('?', 1)[0]) {
      case '/openapi.json':
        void documentFor(serviceUrl()).then((document) => answer(req, res, document));
        return true;
      case '/docs':
      case '/docs/':
        void page('').then((html) => answer(req, res, html));
        return true;
      default:
        return false;
    }
  };
}

/** Remembers the last result; the key changes at most a few times in the life of a server. */
function cached(build: (key: string) => Promise<Resource>): (key: string) => Promise<Resource> {
  let last: { readonly key: string; readonly resource: Promise<Resource> } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, resource: build(key) };
    return last.resource;
  };
}

function resource(text: string, headers: Record<string, string>): Resource {
  const plain = Buffer.from(text);
  // One tag for both encodings has to be a weak one; RFC 9110, section 8.8.1.
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return {
    plain,
    gzip: gzipSync(plain),
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

function answer(req: IncomingMessage, res: ServerResponse, { plain, gzip, etag, headers }: Resource): void {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.writeHead(405, { allow: 'GET, HEAD', 'content-type': 'application/json' });
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
  res.end(body); // Node leaves out the body of an answer to HEAD by itself
}

/** If-None-Match compares weakly; RFC 9110, section 13.1.2. */
const isCurrent = (ifNoneMatch = '', etag: string): boolean =>
  ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^(?!W\/)/, 'W/') === etag);

/** `gzip` or `*`, unless its weight is zero. */
const acceptsGzip = (acceptEncoding: string | string[] = ''): boolean =>
  String(acceptEncoding)
    .split(',')
    .some((entry) => /^\s*(gzip|x-gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(entry));
