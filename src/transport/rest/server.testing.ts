import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { Message } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { createLogger } from '../../base/log.ts';
import { methods } from '../../contract/contract.testing.ts';
import {
  type CreateGroupRequest,
  GroupSchema,
  ListGroupsResponseSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { IncomingCall } from '../../pipeline/call.ts';
import type { RestOptions } from './handler.ts';
import { createRestHandler } from './handler.ts';

export const LIMIT = 1000;

/**
 * Starts a server on a free port. Its `call` returns the created group, and otherwise an empty list or an empty
 * message.
 */
export async function startRestServer(t: TestContext, options: Partial<RestOptions> = {}) {
  const calls: IncomingCall[] = [];
  const logged: string[] = [];
  let ids = 0;
  const handle = createRestHandler({
    methods,
    call: async (incoming) => {
      calls.push(incoming);
      return echo(incoming);
    },
    serviceDomain: 'wharfinger.dev',
    newRequestId: () => `new-${++ids}`,
    maxBodyBytes: LIMIT,
    cors: [],
    log: createLogger({ level: 'info', destination: { write: (line) => logged.push(line) } }),
    ...options,
  });
  const server = createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    calls,
    logged,
    fetch: (target: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${target}`, init),
    /** POSTs a group. */
    post: (
      body: string | Uint8Array<ArrayBuffer>,
      headers: Record<string, string> = { 'content-type': 'application/json' },
    ) =>
      fetch(`http://127.0.0.1:${port}/iam/v2/groups/a`, {
        method: 'POST',
        body,
        headers,
        duplex: 'half',
      } as RequestInit),
    async open(): Promise<Socket> {
      const socket = connect(port, '127.0.0.1');
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      return socket;
    },
  };
}

async function echo({ method, read }: IncomingCall): Promise<Message> {
  const request = await read();
  if (method.desc.name === 'CreateGroup') return (request as CreateGroupRequest).group ?? create(GroupSchema);
  return method.desc.name.startsWith('List') ? create(ListGroupsResponseSchema) : create(EmptySchema);
}

export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly details: readonly Record<string, unknown>[];
}

export async function errorOf(response: Response): Promise<ErrorBody> {
  assert.equal(response.headers.get('content-type'), 'application/json');
  return (await response.json()) as ErrorBody;
}
