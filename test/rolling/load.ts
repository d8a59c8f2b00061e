import { randomUUID } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { type Client, grpcClient } from '../support/wires.ts';

const { createGroup, getGroup, listGroups } = GroupsService.method;

/** The longest pause of a client between two requests. A random part of it lets requests arrive at every moment. */
const PAUSE_MS = 100;
/** A request without a response in this time counts as failed. */
const TIMEOUT_MS = 30_000;
const SAMPLE = 100;

export interface LoadOptions {
  /** Where REST clients connect to. */
  readonly url: string;
  /** Where gRPC clients connect to, in turn. */
  readonly grpcUrls: readonly string[];
  readonly token: string;
  readonly organization: string;
  readonly restClients?: number;
  readonly grpcClients?: number;
}

export interface RequestCounts {
  readonly rest: number;
  readonly grpc: number;
}

export interface LoadResult {
  readonly requests: RequestCounts;
  /** Each response that is not a success, and each connection error. */
  readonly failures: readonly Failure[];
  /** The ids of the first requests that succeeded. */
  readonly answered: readonly string[];
  /** Creates that were acknowledged but are missing at the end, or exist twice. */
  readonly wrongCounts: readonly string[];
}

export interface Failure {
  readonly requestId: string;
  readonly time: string;
  readonly client: string;
  readonly request: string;
  readonly problem: string;
  /** Whether the request was sent on an HTTP/1.1 connection that had served one before. */
  readonly isOnOpenConnection: boolean;
}

export interface Load {
  /** The requests that were sent so far. */
  readonly counts: RequestCounts;
  /** The requests that have failed so far. */
  readonly failures: readonly Failure[];
  /** Ends the clients after their current request. */
  stop(): Promise<LoadResult>;
}

/** A client that gets, lists and creates groups on one connection. Each method rejects if the request fails. */
interface LoadClient {
  readonly name: string;
  readonly wire: 'rest' | 'grpc';
  create(requestId: string, parent: string, name: string): Promise<string>;
  get(requestId: string, uid: string): Promise<void>;
  /** Returns the total. */
  list(requestId: string, parent: string): Promise<number>;
  close(): void;
}

/** Starts clients that send requests until `stop`: 50 of them by default, each with a connection and a group. */
export async function startLoad(options: LoadOptions): Promise<Load> {
  const { url, grpcUrls, token, organization, restClients = 36, grpcClients = 14 } = options;
  const clients = [
    ...Array.from({ length: restClients }, (_, at) => restLoadClient(`rest ${at}`, url, token)),
    ...Array.from({ length: grpcClients }, (_, at) =>
      grpcLoadClient(`grpc ${at}`, grpcUrls[at % grpcUrls.length] ?? url, token),
    ),
  ];
  const failures: Failure[] = [];
  const answered: string[] = [];
  const requests = { rest: 0, grpc: 0 };
  let isStopping = false;

  type Send<T> = (requestId: string) => Promise<T>;
  async function count<T>(client: LoadClient, name: string, send: Send<T>): Promise<T | undefined> {
    requests[client.wire]++;
    const requestId = randomUUID();
    try {
      const result = await send(requestId);
      if (answered.length < SAMPLE) answered.push(requestId);
      return result;
    } catch (error) {
      const time = new Date().toISOString();
      const { message: problem, isOnOpenConnection = false } = error as Error & { isOnOpenConnection?: boolean };
      failures.push({ requestId, time, client: client.name, request: name, problem, isOnOpenConnection });
      return undefined;
    }
  }

  /** Returns how many groups were created. */
  async function run(client: LoadClient, parent: string): Promise<number> {
    let created = 0;
    for (let round = 0; !isStopping; round++) {
      const uid = await count(client, 'create', (id) => client.create(id, parent, `group ${round}`));
      if (uid !== undefined) created++;
      await delay(Math.random() * PAUSE_MS);
      for (let i = 0; i < 3 && !isStopping; i++) {
        await count(client, 'get', (id) => client.get(id, uid ?? parent));
        await delay(Math.random() * PAUSE_MS);
        await count(client, 'list', (id) => client.list(id, parent));
        await delay(Math.random() * PAUSE_MS);
      }
    }
    return created;
  }

  const runs = await Promise.all(
    clients.map(async (client, at) => {
      const parent = await client.create(randomUUID(), organization, `load ${Date.now()} ${at}`);
      return { client, parent };
    }),
  ).then((ready) => ready.map(({ client, parent }) => ({ client, parent, created: run(client, parent) })));

  return {
    counts: requests,
    failures,
    async stop() {
      isStopping = true;
      const wrongCounts: string[] = [];
      const reader = restLoadClient('reader', url, token);
      await Promise.all(
        runs.map(async ({ client, parent, created }) => {
          const expected = await created;
          client.close();
          const found = await reader.list(randomUUID(), parent);
          if (found !== expected) wrongCounts.push(`${client.name}: created ${expected} groups, found ${found}`);
        }),
      );
      reader.close();
      return { requests, failures, answered, wrongCounts };
    },
  };
}

function restLoadClient(name: string, url: string, token: string): LoadClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  async function send(id: string, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const authorization = `Bearer ${token}`;
    const headers = { authorization, 'x-request-id': id, ...(body && { 'content-type': 'application/json' }) };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(`${url}${path}`, { agent, method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) }, resolve);
    sent.on('error', (error) => reject(Object.assign(error, { isOnOpenConnection: sent.reusedSocket })));
    sent.end(body && JSON.stringify(body));
    const response = await promise;
    const received = await text(response);
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${received.slice(0, 200)}`);
    return JSON.parse(received);
  }
  return {
    name,
    wire: 'rest',
    create: async (id, parent, groupName) =>
      String((await send(id, 'POST', `/iam/v2/groups/${parent}`, { name: groupName })).uid),
    get: async (id, uid) => void (await send(id, 'GET', `/iam/v2/groups/${uid}`)),
    list: async (id, parent) =>
      Number((await send(id, 'GET', `/iam/v2/groups?uidp.children_of=${parent}&page_size=10`)).totalCount ?? 0),
    close: () => agent.destroy(),
  };
}

function grpcLoadClient(name: string, url: string, token: string): LoadClient {
  // Otherwise all clients of this process would share a connection.
  const client: Client = grpcClient(url, token, { 'grpc.use_local_subchannel_pool': 1 });
  const withTimeout = <T>(response: Promise<T>): Promise<T> =>
    Promise.race([
      response,
      delay(TIMEOUT_MS, undefined, { ref: false }).then(() => Promise.reject(new Error('timed out'))),
    ]);
  return {
    name,
    wire: 'grpc',
    create: async (requestId, parent, groupName) => {
      const request = { parent, group: { name: groupName } };
      return (await withTimeout(client.call(createGroup, request, { token, requestId }))).uid;
    },
    get: async (requestId, uid) => void (await withTimeout(client.call(getGroup, { uid }, { token, requestId }))),
    list: async (requestId, parent) => {
      const request = { uidp: { childrenOf: parent }, pageSize: 10 };
      return Number((await withTimeout(client.call(listGroups, request, { token, requestId }))).totalCount);
    },
    close: () => client.close(),
  };
}
