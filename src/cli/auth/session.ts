import { SecurityTokenService } from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { createApi } from '../client/api.ts';
import { send } from '../client/http.ts';
import { parseObject } from '../client/json.ts';
import type { Context } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { Login } from '../settings/logins.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;

type Place = Pick<Context, 'server' | 'ca'>;

/** What a token shall be good for, and whom it shall speak for. */
export interface Wish {
  readonly audiences?: readonly string[] | undefined;
  readonly identity?: string | undefined;
  readonly identityProvider?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly capabilities?: readonly string[] | undefined;
}

/** Shorter than others wait for a lock that is held meanwhile. */
const PATIENCE_MS = 10_000;

const sts = ({ server, ca }: Place) => createApi({ server, ca, patienceMs: PATIENCE_MS });

/** Trades a token for one of the server. Without a wish for an audience, it is meant for that server. */
export async function exchangeToken(place: Place, token: string, wish: Wish): Promise<Login> {
  const audiences = wish.audiences ?? [await nameOf(place)];
  const answer = await sts(place).call(exchange, {
    token,
    fields: {
      aud: audiences,
      identity: wish.identity,
      identity_provider: wish.identityProvider,
      scopes: wish.scopes,
      cap: wish.capabilities,
    },
  });
  return loginFrom(answer as RawToken, audiences, answer.refreshToken as string | undefined);
}

/** What a server calls itself (OpenID Connect Discovery), which need not be the address that we reach it by. */
async function nameOf({ server, ca }: Place): Promise<string> {
  const path = '/.well-known/openid-configuration';
  const { text } = await send({ verb: 'GET', server, path, ca, patienceMs: PATIENCE_MS });
  const { issuer } = parseObject(text) ?? {};
  return typeof issuer === 'string' ? issuer : server;
}

/** The next token of a login whose token has expired. */
export async function renewLogin(place: Place, { audiences, refreshToken }: Login): Promise<Login> {
  if (refreshToken === undefined) throw ended(place, 'its token has expired');
  const answer = await sts(place)
    .call(exchangeRefreshToken, { token: refreshToken, fields: { aud: audiences } })
    .catch((error: unknown) => {
      const isOver = error instanceof CliError && error.exitCode === ExitCode.unauthenticated;
      throw isOver ? ended(place, error.message) : error;
    });
  const { token = {}, refreshToken: next } = answer as { token?: RawToken; refreshToken?: RawToken };
  return loginFrom(token, audiences, next?.token);
}

/** The JSON of a `RawToken`, as far as both methods fill it. */
interface RawToken {
  readonly token?: string;
  readonly expiry?: string;
}

const loginFrom = ({ token = '', expiry }: RawToken, audiences: readonly string[], refreshToken?: string): Login => ({
  token,
  audiences,
  ...(expiry && { expires: expiry }),
  ...(refreshToken && { refreshToken }),
});

const ended = ({ server }: Place, reason: string): CliError =>
  new CliError(
    ExitCode.unauthenticated,
    `the login at ${server} has ended (${reason}): log in again with 'wharf auth login', or forget it with 'wharf auth logout'`,
  );
