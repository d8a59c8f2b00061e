import { protectUserFile } from '../../base/private-files.ts';
import { readJsonFile, userFile, withFileLock, writeJsonFile } from './private-file.ts';

/** The tokens of a login at one server. */
export interface Login {
  readonly token: string;
  /** When the token expires (ISO 8601). Absent when the server did not say. */
  readonly expires?: string;
  /** Can be exchanged once for the next token. */
  readonly refreshToken?: string;
  /** The audiences of the tokens of this login. */
  readonly audiences: readonly string[];
}

type Logins = Readonly<Record<string, Login>>;

/** Allows for clock skew and for the duration of a request. */
const EXPIRY_MARGIN_MS = 60_000;

const path = (): string => userFile('credentials.json');

async function readLogins(): Promise<Logins> {
  const change = protectUserFile(path());
  if (change !== undefined) process.stderr.write(`wharf: ${change}\n`);
  const { logins = {} } = ((await readJsonFile(path())) ?? {}) as { logins?: Logins };
  return logins;
}

/** Returns the servers that have a login. */
export const listLogins = async (): Promise<readonly string[]> => Object.keys(await readLogins());

export const findLogin = async (server: string): Promise<Login | undefined> => (await readLogins())[server];

export const saveLogin = (server: string, login: Login): Promise<void> =>
  withFileLock(path(), async () => writeJsonFile(path(), { logins: { ...(await readLogins()), [server]: login } }));

/** Returns whether there was a login. */
export function removeLogin(server: string): Promise<boolean> {
  return withFileLock(path(), async () => {
    const { [server]: removed, ...rest } = await readLogins();
    if (removed !== undefined) await writeJsonFile(path(), { logins: rest });
    return removed !== undefined;
  });
}

export const isExpired = ({ expires }: Login, now: number): boolean =>
  expires !== undefined && Date.parse(expires) - EXPIRY_MARGIN_MS <= now;

/**
 * Returns the login at a server and renews it first when its token has expired. A file lock lets one process renew at a
 * time, because using a refresh token twice ends its login and scripts run this program in parallel.
 */
export async function getValidLogin(
  server: string,
  renew: (login: Login) => Promise<Login>,
  now = Date.now(),
): Promise<Login | undefined> {
  const cached = await findLogin(server);
  if (cached === undefined || !isExpired(cached, now)) return cached;
  return withFileLock(path(), async () => {
    const logins = await readLogins();
    const login = logins[server];
    if (login === undefined || !isExpired(login, now)) return login;
    const renewed = await renew(login);
    await writeJsonFile(path(), { logins: { ...logins, [server]: renewed } });
    return renewed;
  });
}
