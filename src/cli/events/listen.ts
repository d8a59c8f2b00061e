import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import type { JSONWebKeySet } from 'jose';
import { systemClock } from '../../base/clock.ts';
import { SubscriptionsService } from '../../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { createApi } from '../client/api.ts';
import { apiError } from '../client/api-error.ts';
import { sendRequest } from '../client/http.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import type { ClientContext } from '../context.ts';
import { errorMessage } from '../error-message.ts';
import { addExamples } from '../help.ts';
import { escapeForTerminal } from '../output/text.ts';
import { type ReceivedEvent, receivedEventText } from './received-event.ts';
import { findProblems } from './verify-delivery.ts';

const { createSubscription, deleteSubscription } = SubscriptionsService.method;
const MAX_BODY_BYTES = 8 * 1024 * 1024;

interface Options {
  readonly port: number;
  readonly group?: string;
  readonly secret?: string;
  readonly count?: number;
}

/** Adds a receiver for trying out events. It verifies each delivery, as every receiver should, and prints it. */
export function addListen(area: Command): void {
  const command = addClientOptions(
    area
      .command('listen')
      .description('receive events on this machine, verify them and print them')
      .option('--port <n>', 'the port to listen on; 0 for any free port', parseWholeNumber, 0)
      .option('--group <uid>', 'subscribe to this group while the command runs')
      .option('--secret <secret>', 'the secret of the subscription, to verify signatures')
      .option('--count <n>', 'stop after this many events', parseWholeNumber),
  );
  command.addHelpText(
    'after',
    '\nWith --group, the server must run on this machine with WHARF_ALLOW_INSECURE_SINKS=true.',
  );
  addExamples(command, 'wharf events listen --group $GROUP', 'wharf events listen --port 9000 --secret whsec_…');
  command.action(async (options: Options) => listen(await readContext(command), options));
}

function parseWholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('write a whole number');
  return Number(text);
}

async function listen(context: ClientContext, options: Options): Promise<void> {
  const { terminal } = context;
  const stop = createStopSignal();
  const keys = createKeyReader(context);
  let secret = options.secret;
  let count = 0;
  const receive = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = await readAll(req);
    const { headers } = req;
    if (headers['ce-id'] === undefined || headers['ce-type'] === undefined) {
      res.writeHead(400).end('not a CloudEvent\n');
      return;
    }
    const problems = await findProblems({ headers, body }, { secret, keys, now: systemClock() });
    const event: ReceivedEvent = { headers, body, problems, isSigned: secret !== undefined };
    terminal.out(receivedEventText(event, context.output, terminal.width !== undefined));
    res.writeHead(problems.length === 0 ? 204 : 403).end();
    if (++count === options.count) stop.now();
  };
  const server = createServer((req, res) => {
    receive(req, res).catch((error: unknown) => {
      terminal.err(`${escapeForTerminal(errorMessage(error))}\n`);
      res.destroy();
    });
  });
  server.listen(options.port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  terminal.err(`listening at ${url}; stop with Ctrl-C\n`);
  const ended = stop.wait();
  try {
    if (options.group === undefined) return await ended;
    const onHeaders = (headers: Headers) => {
      secret = headers.get('wharfinger-webhook-secret') ?? undefined;
    };
    const api = createApi(context);
    const { uid } = await api.call(createSubscription, { path: [options.group], body: { sink: url }, onHeaders });
    terminal.err(`subscribed to ${options.group}\n`);
    await ended;
    await api.call(deleteSubscription, { path: [String(uid)] });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** A promise that resolves on SIGINT, on SIGTERM, or when `now` is called. */
function createStopSignal() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    now: resolve,
    async wait(): Promise<void> {
      process.once('SIGINT', resolve).once('SIGTERM', resolve);
      await promise;
      process.off('SIGINT', resolve).off('SIGTERM', resolve);
    },
  };
}

/** Returns a function that fetches the public keys of the server once. */
function createKeyReader({ server, ca }: ClientContext): () => Promise<JSONWebKeySet> {
  let cached: JSONWebKeySet | undefined;
  return async () => {
    if (cached) return cached;
    const response = await sendRequest({ verb: 'GET', server, ca, path: '/.well-known/jwks.json' });
    if (response.status !== 200) throw apiError(server, response);
    cached = JSON.parse(response.text) as JSONWebKeySet;
    return cached;
  };
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error('refused a request: its body is larger than 8 MiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
