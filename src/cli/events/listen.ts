import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import type { JSONWebKeySet } from 'jose';
import { systemClock } from '../../base/clock.ts';
import { SubscriptionsService } from '../../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { createApi } from '../client/api.ts';
import { apiError } from '../client/api-error.ts';
import { send } from '../client/http.ts';
import { addClientOptions, type Context, contextOf } from '../context.ts';
import { messageOf } from '../failure.ts';
import { example } from '../help.ts';
import { visible } from '../output/text.ts';
import { type Arrived, arrivedText } from './received-event.ts';
import { problemsOf } from './verify.ts';

const { createSubscription, deleteSubscription } = SubscriptionsService.method;
const MAX_BODY = 8 * 1024 * 1024;

interface Options {
  readonly port: number;
  readonly group?: string;
  readonly secret?: string;
  readonly count?: number;
}

/** A receiver for people who are trying it out: it verifies what comes as every receiver should, and shows it. */
export function addListen(area: Command): void {
  const command = addClientOptions(
    area
      .command('listen')
      .description('receive events on this machine, verify and print them')
      .option('--port <n>', 'where to listen; 0 for any free one', wholeNumber, 0)
      .option('--group <uid>', 'subscribe to this group for as long as it listens')
      .option('--secret <secret>', 'the secret of the subscription, to check signatures with')
      .option('--count <n>', 'stop after so many', wholeNumber),
  );
  command.addHelpText(
    'after',
    '\nWith --group the server must be on this machine, and started with WHARF_ALLOW_INSECURE_SINKS=true.',
  );
  example(command, 'wharf events listen --group $GROUP', 'wharf events listen --port 9000 --secret whsec_…');
  command.action(async (options: Options) => listen(await contextOf(command), options));
}

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('write a whole number');
  return Number(text);
}

async function listen(context: Context, options: Options): Promise<void> {
  const { terminal } = context;
  const stop = stopper();
  const keys = createKeys(context);
  let secret = options.secret;
  let count = 0;
  const receive = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = await readAll(req);
    const { headers } = req;
    if (headers['ce-id'] === undefined || headers['ce-type'] === undefined) {
      res.writeHead(400).end('not a CloudEvent\n');
      return;
    }
    const problems = await problemsOf({ headers, body }, { secret, keys, now: systemClock() });
    const arrived: Arrived = { headers, body, problems, isSigned: secret !== undefined };
    terminal.out(arrivedText(arrived, context.output, terminal.width !== undefined));
    res.writeHead(problems.length === 0 ? 204 : 403).end();
    if (++count === options.count) stop.now();
  };
  const server = createServer((req, res) => {
    receive(req, res).catch((error: unknown) => {
      terminal.err(`${visible(messageOf(error))}\n`);
      res.destroy();
    });
  });
  server.listen(options.port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  terminal.err(`listening at ${url}; Ctrl-C ends it\n`);
  const ended = stop.wait();
  try {
    if (options.group === undefined) return await ended;
    const hear = (headers: Headers) => {
      secret = headers.get('wharfinger-webhook-secret') ?? undefined;
    };
    const api = createApi(context);
    const { uid } = await api.call(createSubscription, { path: [options.group], body: { sink: url }, hear });
    terminal.err(`subscribed to ${options.group}\n`);
    await ended;
    await api.call(deleteSubscription, { path: [String(uid)] });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** Ends on a signal, or when told to. */
function stopper() {
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

/** The public keys of the server, asked for with the first event. */
function createKeys({ server, ca }: Context): () => Promise<JSONWebKeySet> {
  let known: JSONWebKeySet | undefined;
  return async () => {
    if (known) return known;
    const answer = await send({ verb: 'GET', server, ca, path: '/.well-known/jwks.json' });
    if (answer.status !== 200) throw apiError(server, answer);
    known = JSON.parse(answer.text) as JSONWebKeySet;
    return known;
  };
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > MAX_BODY) throw new Error('a body of more than 8 MiB came in, and was cut off');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
