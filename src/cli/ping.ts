import type { Command } from 'commander';
import { apiError } from './client/api-error.ts';
import { sendRequest } from './client/http.ts';
import { parseJsonObject } from './client/json.ts';
import { addClientOptions, readContext } from './client-options.ts';
import type { Connection } from './context.ts';
import { addExamples } from './help.ts';
import { print } from './output/print.ts';

const TIMEOUT_MS = 10_000;

export function addPing(program: Command): void {
  const command = addClientOptions(program.command('ping').description('check that a server responds'));
  addExamples(command, 'wharf ping', 'wharf ping --server https://wharf.example.com');
  command.action(async () => {
    const context = await readContext(command);
    const { server } = context;
    const milliseconds = await ping(context);
    print(context, { server, milliseconds }, () => `${server} answered in ${milliseconds} ms\n`);
  });
}

/** Returns how many milliseconds the server took to respond. */
async function ping({ server, ca }: Connection): Promise<number> {
  const request = { verb: 'GET', server, ca, path: '/ping/v2/ping', timeoutMs: TIMEOUT_MS };
  // The first use of fetch loads it. That time must not count.
  new Request(server);
  const start = performance.now();
  const response = await sendRequest(request);
  const elapsed = Math.round(performance.now() - start);
  if (response.status !== 200) throw apiError(server, response);
  if (parseJsonObject(response.text)?.response === undefined) {
    throw new Error(`${server} is not a Wharfinger server: check the address`);
  }
  return elapsed;
}
