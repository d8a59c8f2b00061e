import type { Command } from 'commander';
import { commit, version } from '../base/version.ts';
import { sendRequest } from './client/http.ts';
import { parseJsonObject } from './client/json.ts';
import { addClientOptions, readContext } from './client-options.ts';
import type { Connection } from './context.ts';
import { addExamples } from './help.ts';
import { print } from './output/print.ts';

const TIMEOUT_MS = 3000;

export function addVersion(program: Command): void {
  const command = addClientOptions(
    program.command('version').description('show the versions of this program and of the server'),
  );
  addExamples(command, 'wharf version', 'wharf version --server https://wharf.example.com -o json');
  command.action(async () => {
    const context = await readContext(command);
    const client = { version, ...(commit !== undefined && { commit }), node: process.version };
    const running = await serverVersion(context);
    const server = { url: context.server, ...(running !== undefined && { version: running }) };
    const withCommit = commit === undefined ? version : `${version} (${commit})`;
    print(
      context,
      { client, server },
      () => `wharf   ${withCommit}, Node ${process.version}\nserver  ${running ?? 'no response'}, ${server.url}\n`,
    );
  });
}

/** Returns undefined if the server does not respond or is a different one: the version of the program is still shown. */
async function serverVersion({ server, ca }: Connection): Promise<string | undefined> {
  try {
    const response = await sendRequest({ verb: 'GET', server, ca, path: '/version', timeoutMs: TIMEOUT_MS });
    const found = response.status === 200 ? parseJsonObject(response.text)?.version : undefined;
    return typeof found === 'string' ? found : undefined;
  } catch {
    return undefined;
  }
}
