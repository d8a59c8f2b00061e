import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose';

/** An OpenID issuer whose documents and responses a test can replace, for example by invalid ones. */
export interface TestIssuer {
  readonly url: string;
  /** The requested paths. */
  readonly requests: string[];
  /** The documents by path. Initially those of a valid issuer. */
  readonly documents: Record<string, unknown>;
  /** Handles all requests instead of `documents` while it is set. */
  handler: RequestListener | undefined;
  /** Replaces the published keys. */
  publish(...keys: SigningKey[]): void;
}

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export const newKey = (kid: string): SigningKey => ({ kid, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) });

export const publicJwk = ({ kid, publicKey }: SigningKey) => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
  alg: 'ES256',
});

/** Signs a token with exactly these claims. */
export const sign = (claims: JWTPayload, key: SigningKey, header: Partial<JWTHeaderParameters> = {}): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: key.kid, ...header }).sign(key.privateKey);

export const DISCOVERY = '/.well-known/openid-configuration';

export async function startIssuer(t: TestContext, ...keys: SigningKey[]): Promise<TestIssuer> {
  const server = createServer((req, res) => {
    issuer.requests.push(req.url ?? '');
    if (issuer.handler) return void issuer.handler(req, res);
    const document = issuer.documents[req.url ?? ''];
    res.writeHead(document === undefined ? 404 : 200).end(JSON.stringify(document ?? {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: TestIssuer = {
    url,
    requests: [],
    documents: { [DISCOVERY]: { issuer: url, jwks_uri: `${url}/keys` } },
    handler: undefined,
    publish(...published) {
      issuer.documents['/keys'] = { keys: published.map(publicJwk) };
    },
  };
  issuer.publish(...keys);
  return issuer;
}
