import type { Command } from 'commander';
import { apiError } from './client/api-error.ts';
import { send } from './client/http.ts';
import { parseObject } from './client/json.ts';
import { addClientOptions, type Context, contextOf } from './context.ts';
import { example } from './help.ts';
import { print } from './output/print.ts';

const PATIENCE_MS = 10_000;

export function addPing(program: Command): void {
  const command = addClientOptions(program.command('ping').description('check that a server answers'));
  example(command, 'wharf ping', 'wharf ping --server https://wharf.example.com');
  command.action(async () => {
    const context = await contextOf(command);
    const { server } = context;
    const milliseconds = await ping(context);
    print(context, { server, milliseconds }, () => `${server} answered in ${milliseconds} ms\n`);
  });
}

/** How many milliseconds the server took to answer. */
async function ping({ server, ca }: Pick<Context, 'server' | 'ca'>): Promise<number> {
  const request = { verb: 'GET', server, ca, path: '/ping/v2/ping', patienceMs: PATIENCE_MS };
  // The first use of fetch loads it, which is not the server's doing.
  new Request(server);
  const start = performance.now();
  const answer = await send(request);
  const elapsed = Math.round(performance.now() - start);
  if (answer.status !== 200) throw apiError(server, answer);
  if (parseObject(answer.text)?.response === undefined) {
    throw new Error(`${server} answered, but not like a Wharfinger server: is it the right address?`);
  }
  return elapsed;
}
