import type { Command } from 'commander';
import { addClientOptions, type Context, contextOf } from './context.ts';
import { errorCode, messageOf, rootOf } from './failure.ts';
import { example } from './help.ts';

const PATIENCE_MS = 10_000;

export function addPing(program: Command): void {
  const command = addClientOptions(program.command('ping').description('check that a server answers'));
  example(command, 'wharf ping', 'wharf ping --server https://wharf.example.com');
  command.action(async () => {
    const context = contextOf(command);
    const milliseconds = await ping(context);
    process.stdout.write(
      context.output === 'json'
        ? `${JSON.stringify({ server: context.server, milliseconds })}\n`
        : `${context.server} answered in ${milliseconds} ms\n`,
    );
  });
}

/** How many milliseconds the server took to answer. */
async function ping({ server }: Pick<Context, 'server'>): Promise<number> {
  // Built before the clock starts: the first use of fetch loads it, which is not the server's doing.
  const request = new Request(`${server}/ping/v2/ping`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const start = performance.now();
  const answer = await fetch(request).catch((error) => {
    throw new Error(unreachable(server, error));
  });
  const body: unknown = await answer.json().catch(() => undefined);
  const elapsed = Math.round(performance.now() - start);
  if (!answer.ok) throw new Error(`${server} is reachable but answered ${answer.status} ${answer.statusText}`);
  if (typeof body !== 'object' || body === null || !('response' in body)) {
    throw new Error(`${server} answered, but not like a Wharfinger server: is it the right address?`);
  }
  return elapsed;
}

function unreachable(server: string, error: Error): string {
  if (error.name === 'TimeoutError') return `${server} did not answer within ${PATIENCE_MS / 1000} s`;
  switch (errorCode(error)) {
    case 'ECONNREFUSED':
      return `nothing listens at ${server}: start a server with 'wharf serve', or name another with --server (WHARF_SERVER)`;
    case 'ENOTFOUND':
      return `the host of ${server} is not known: is --server (WHARF_SERVER) spelled right?`;
    default:
      return `cannot reach ${server}: ${messageOf(rootOf(error))}`;
  }
}
