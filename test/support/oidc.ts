import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

/** An OpenID provider (the package oidc-provider) on this machine. */
export interface OidcProvider {
  readonly issuer: string;
  /** Logs in as a client and returns a token whose subject is the client. */
  token(client: string, audience: string): Promise<string>;
  /** Replaces the signing key. Tokens of the old key are no longer valid. */
  rotateKeys(): void;
  stop(): void;
}

const SECRET = 'client secret with spaces';

/** `clients` are the ids of the clients that can log in. Tokens have `claims` in addition to the standard ones. */
export async function startOidcProvider(
  clients: readonly string[],
  claims: Readonly<Record<string, unknown>> = {},
): Promise<OidcProvider> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let handle = newProvider(issuer, clients, claims);
  server.on('request', (req, res) => handle(req, res));
  return {
    issuer,
    async token(client, audience) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${client}:${encodeURIComponent(SECRET)}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
      });
      const { access_token: token } = (await response.json()) as { access_token?: string };
      if (!token) throw new Error(`the provider returned no token: status ${response.status}`);
      return token;
    },
    rotateKeys() {
      handle = newProvider(issuer, clients, claims);
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Creates a provider with a new key. A provider cannot change its keys. */
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
    adapter: NoStorage,
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

/** The provider requires a storage adapter, but tokens that are JWTs are not stored. */
class NoStorage {
  async upsert(): Promise<void> {}
  async find(): Promise<undefined> {}
}
