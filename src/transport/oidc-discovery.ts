import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** As long as a new signing key waits before it is used, so that nobody meets a key they could not know. */
const MAX_AGE_S = 300;

export interface WellKnownOptions {
  /** The public URL of this server: what its tokens name as their issuer, to the letter. */
  readonly issuer: () => string;
  readonly publicKeys: () => Promise<object>;
}

/** What others need to check our tokens: OpenID Connect Discovery 1.0 and the JSON Web Key Set that it leads to. */
export function createWellKnown({
  issuer,
  publicKeys,
}: WellKnownOptions): (req: IncomingMessage, res: ServerResponse) => boolean {
  const documents: ReadonlyMap<string, () => Promise<object>> = new Map([
    ['/.well-known/openid-configuration', async () => discovery(issuer())],
    ['/.well-known/jwks.json', publicKeys],
  ]);
  return (req, res) => {
    const document = documents.get(req.url?.split('?', 1)[0] ?? '');
    if (!document) return false;
    if (req.method === 'GET' || req.method === 'HEAD') {
      document().then(
        (body) => answer(req, res, `${JSON.stringify(body)}\n`),
        () => refuse(res, 503, 'the database cannot be reached'),
      );
    } else {
      res.setHeader('allow', 'GET, HEAD');
      refuse(res, 405, 'use GET or HEAD');
    }
    return true;
  };
}

const discovery = (issuer: string) => ({
  issuer,
  jwks_uri: `${issuer}/.well-known/jwks.json`,
  token_endpoint: `${issuer}/sts/exchange`,
  // Nobody logs in here by a browser: tokens are exchanged for those of other issuers.
  grant_types_supported: ['urn:ietf:params:oauth:grant-type:token-exchange'],
  response_types_supported: ['id_token'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti', 'auth_time', 'act', 'email', 'email_verified'],
});

function answer(req: IncomingMessage, res: ServerResponse, body: string): void {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers = {
    'content-type': 'application/json',
    'cache-control': `public, max-age=${MAX_AGE_S}`,
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
    etag,
  };
  if (isCurrent(req.headers['if-none-match'], etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  res.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) });
  // Node leaves out the body of an answer to HEAD by itself.
  res.end(body);
}

/** If-None-Match compares weakly; RFC 9110, section 13.1.2. */
const isCurrent = (ifNoneMatch = '', etag: string): boolean =>
  ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);

function refuse(res: ServerResponse, status: number, reason: string): void {
  const body = `${JSON.stringify({ status: 'error', reason })}\n`;
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  res.end(body);
}
