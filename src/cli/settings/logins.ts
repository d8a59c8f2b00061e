import { locked, readObject, userFile, writeObject } from './private-file.ts';

/** What a login at one server left behind. */
export interface Login {
  readonly token: string;
  /** When the token ends, in ISO 8601; absent when the server did not say. */
  readonly expires?: string;
  /** Buys the next token, once. */
  readonly refreshToken?: string;
  /** Whom tokens of this login are meant for. */
  readonly audiences: readonly string[];
}

type Logins = Readonly<Record<string, Login>>;

/** The clocks of two machines differ, and a request takes a while. */
const MARGIN_MS = 60_000;

const path = (): string => userFile('credentials.json');

async function readLogins(): Promise<Logins> {
  const { logins = {} } = ((await readObject(path())) ?? {}) as { logins?: Logins };
  return logins;
}

/** The servers that there are logins at. */
export const listLogins = async (): Promise<readonly string[]> => Object.keys(await readLogins());

export const findLogin = async (server: string): Promise<Login | undefined> => (await readLogins())[server];

export const saveLogin = (server: string, login: Login): Promise<void> =>
  locked(path(), async () => writeObject(path(), { logins: { ...(await readLogins()), [server]: login } }));

/** Answers whether there was one. */
export function forgetLogin(server: string): Promise<boolean> {
  return locked(path(), async () => {
    const { [server]: found, ...rest } = await readLogins();
    if (found !== undefined) await writeObject(path(), { logins: rest });
    return found !== undefined;
  });
}

export const isExpired = ({ expires }: Login, now: number): boolean =>
  expires !== undefined && Date.parse(expires) - MARGIN_MS <= now;

/**
 * The login at a server, renewed when its token has expired. One program at a time: a refresh token that is used twice
 * ends its login, and scripts run many of us at once.
 */
export async function freshLogin(
  server: string,
  renew: (login: Login) => Promise<Login>,
  now = Date.now(),
): Promise<Login | undefined> {
  const cached = await findLogin(server);
  if (cached === undefined || !isExpired(cached, now)) return cached;
  return locked(path(), async () => {
    const logins = await readLogins();
    const login = logins[server];
    if (login === undefined || !isExpired(login, now)) return login;
    const renewed = await renew(login);
    await writeObject(path(), { logins: { ...logins, [server]: renewed } });
    return renewed;
  });
}
