import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * A new signing key is published this long before its first use, so that a cached key set always has the current key.
 */
const MAX_AGE_S = 300;

export interface OidcDiscoveryOptions {
  /** The public URL of this server. It is exactly the issuer of its tokens. */
  readonly issuer: string;
  /** The URL of this server as the client of a request knows it, if it can differ from the issuer. */
  readonly urlOf?: ((req: IncomingMessage) => string) | undefined;
  readonly publicKeys: () => Promise<object>;
}

/**
 * Serves the documents with which third parties verify the tokens of this server: OpenID Connect Discovery 1.0 and the
 * JSON Web Key Set. Returns false for any other path.
 */
export function createOidcDiscovery({
  issuer,
  urlOf,
  publicKeys,
}: OidcDiscoveryOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  const documents: ReadonlyMap<string, (req: IncomingMessage) => Promise<object>> = new Map<
    string,
    (req: IncomingMessage) => Promise<object>
  >([
    ['/.well-known/openid-configuration', async (req) => discovery(issuer, urlOf?.(req) ?? issuer)],
    ['/.well-known/jwks.json', publicKeys],
  ]);
  const vary = urlOf && { vary: 'host, forwarded, x-forwarded-host, x-forwarded-proto' };
  return (req, res) => {
    const document = documents.get(req.url?.split('?', 1)[0] ?? '');
    if (!document) return false;
    if (req.method === 'GET' || req.method === 'HEAD') {
      document(req).then(
        (body) => sendDocument(req, res, `${JSON.stringify(body)}\n`, vary),
        () => sendError(res, 503, 'the database cannot be reached'),
      );
    } else {
      res.setHeader('allow', 'GET, HEAD');
      sendError(res, 405, 'use GET or HEAD');
    }
    return true;
  };
}

const discovery = (issuer: string, url: string) => ({
  issuer,
  jwks_uri: `${url}/.well-known/jwks.json`,
  token_endpoint: `${url}/sts/exchange`,
  // There is no login in a browser: the server exchanges tokens of other issuers.
  grant_types_supported: ['urn:ietf:params:oauth:grant-type:token-exchange'],
  response_types_supported: ['id_token'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti', 'auth_time', 'act', 'email', 'email_verified'],
});

function sendDocument(req: IncomingMessage, res: ServerResponse, body: string, vary?: { readonly vary: string }): void {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers = {
    'content-type': 'application/json',
    'cache-control': `public, max-age=${MAX_AGE_S}`,
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
    ...vary,
    etag,
  };
  if (isCurrent(req.headers['if-none-match'], etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  res.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) });
  // Node omits the body of a response to HEAD.
  res.end(body);
}

/** If-None-Match compares weakly; RFC 9110, section 13.1.2. */
const isCurrent = (ifNoneMatch = '', etag: string): boolean =>
  ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);

function sendError(res: ServerResponse, status: number, reason: string): void {
  const body = `${JSON.stringify({ status: 'error', reason })}\n`;
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  res.end(body);
}
