import { SecurityTokenService } from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { createApi } from '../client/api.ts';
import { sendRequest } from '../client/http.ts';
import { parseJsonObject } from '../client/json.ts';
import type { Connection } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { Login } from '../settings/logins.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;

/** The restrictions and the identity of a token that is requested. */
export interface TokenRequest {
  readonly audiences?: readonly string[] | undefined;
  readonly identity?: string | undefined;
  readonly identityProvider?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly capabilities?: readonly string[] | undefined;
}

/** Shorter than the timeout of the lock on the logins, which is locked during a renewal. */
const TIMEOUT_MS = 10_000;

const createStsApi = ({ server, ca }: Connection) => createApi({ server, ca, timeoutMs: TIMEOUT_MS });

/** Exchanges a token for one of the server. The default audience is the server itself. */
export async function exchangeToken(connection: Connection, token: string, request: TokenRequest): Promise<Login> {
  const audiences = request.audiences ?? [await issuerOf(connection)];
  const response = await createStsApi(connection).call(exchange, {
    token,
    fields: {
      aud: audiences,
      identity: request.identity,
      identity_provider: request.identityProvider,
      scopes: request.scopes,
      cap: request.capabilities,
    },
  });
  return loginOf(response as RawToken, audiences, response.refreshToken as string | undefined);
}

/** The issuer URL of a server (OpenID Connect Discovery). It can differ from the address that the client uses. */
async function issuerOf({ server, ca }: Connection): Promise<string> {
  const path = '/.well-known/openid-configuration';
  const { text } = await sendRequest({ verb: 'GET', server, path, ca, timeoutMs: TIMEOUT_MS });
  const { issuer } = parseJsonObject(text) ?? {};
  return typeof issuer === 'string' ? issuer : server;
}

/** Replaces the expired token of a login with its refresh token. */
export async function renewLogin(connection: Connection, { audiences, refreshToken }: Login): Promise<Login> {
  if (refreshToken === undefined) throw loginEnded(connection, 'its token has expired');
  const response = await createStsApi(connection)
    .call(exchangeRefreshToken, { token: refreshToken, fields: { aud: audiences } })
    .catch((error: unknown) => {
      const isRejected = error instanceof CliError && error.exitCode === ExitCode.unauthenticated;
      throw isRejected ? loginEnded(connection, error.message) : error;
    });
  const { token = {}, refreshToken: next } = response as { token?: RawToken; refreshToken?: RawToken };
  return loginOf(token, audiences, next?.token);
}

/** The fields of the JSON of a `RawToken` that both methods set. */
interface RawToken {
  readonly token?: string;
  readonly expiry?: string;
}

const loginOf = ({ token = '', expiry }: RawToken, audiences: readonly string[], refreshToken?: string): Login => ({
  token,
  audiences,
  ...(expiry && { expires: expiry }),
  ...(refreshToken && { refreshToken }),
});

const loginEnded = ({ server }: Connection, reason: string): CliError =>
  new CliError(
    ExitCode.unauthenticated,
    `the login at ${server} has ended (${reason}): log in again with 'wharf auth login', or remove it with 'wharf auth logout'`,
  );
