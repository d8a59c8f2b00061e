import { resolve } from 'node:path';
import { version } from '../../base/version.ts';
import { settings } from '../../config.ts';

export interface StartedServer {
  readonly url: string;
  /** The URL on this machine. */
  readonly localUrl: string;
  readonly organization: { readonly uid: string; readonly name: string };
  readonly firstStart: boolean;
  /** The data directory, as an absolute path. */
  readonly data: string;
}

/** The command of this program, depending on how it was started: by npm in a clone, by npx, or installed. */
export function commandOf(env: NodeJS.ProcessEnv): string {
  if (env.npm_lifecycle_event === 'npx') return 'npx wharfinger';
  return env.npm_lifecycle_event === undefined ? 'wharf' : 'npm run -s wharf --';
}

/** The text that a start prints: the address of the server, and commands to paste. */
export function banner({ url, organization, firstStart, data }: StartedServer, command: string): string {
  const dataFlag = data === resolve(settings.data.default) ? '' : ` --data ${shellQuote(data)}`;
  const authorization = '-H "Authorization: Bearer $TOKEN"';
  return `
Wharfinger ${version} serves ${url}
Organization ${organization.name} (${organization.uid})${firstStart ? ', created by this start' : ''}

Paste these into another terminal, in this directory:

  TOKEN=$(${command} auth token${dataFlag})
  curl ${authorization} ${url}/iam/v2/groups
  curl ${authorization} -H 'Content-Type: application/json' -d '{"name":"my-group"}' ${url}/iam/v2/groups/${organization.uid}

`;
}

const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
