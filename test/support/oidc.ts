import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

/** A real OpenID provider on this machine. */
export interface OidcProvider {
  readonly issuer: string;
  /** Logs in as a client and answers a token of the provider: its subject is the client, its audience the resource. */
  token(client: string, audience: string): Promise<string>;
  /** From now on it signs with a new key, and has forgotten the old one. */
  rotateKeys(): void;
  stop(): void;
}

const SECRET = 'only known to clients on this machine';

/** Clients may log in by their own names; tokens carry the extra claims. */
export async function startOidcProvider(
  clients: readonly string[],
  claims: Readonly<Record<string, unknown>> = {},
): Promise<OidcProvider> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let answer = newProvider(issuer, clients, claims);
  server.on('request', (req, res) => answer(req, res));
  return {
    issuer,
    async token(client, audience) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${client}:${encodeURIComponent(SECRET)}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
      });
      const { access_token: token } = (await response.json()) as { access_token?: string };
      if (!token) throw new Error(`the provider gave no token: status ${response.status}`);
      return token;
    },
    rotateKeys() {
      answer = newProvider(issuer, clients, claims);
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A provider has the keys it was made with, so new keys make a new provider. */
function newProvider(
  issuer: string,
  clients: readonly string[],
  claims: Readonly<Record<string, unknown>>,
): RequestListener {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const resourceServer = (audience: string) => ({
    scope: '',
    audience,
    accessTokenFormat: 'jwt',
    accessTokenTTL: 600,
    jwt: { sign: { alg: 'RS256' } },
  });
  const provider = new Provider(issuer, {
    adapter: Forgetful,
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }] },
    clients: clients.map((name) => ({
      client_id: name,
      client_secret: SECRET,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    ttl: { ClientCredentials: 600 },
    extraTokenClaims: () => claims,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, resource: string) => resourceServer(resource),
      },
    },
  });
  return provider.callback();
}

/** Tokens that are JWTs need no memory. */
class Forgetful {
  async upsert(): Promise<void> {}
  async find(): Promise<undefined> {}
}
