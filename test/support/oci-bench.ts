import { after, before, describe } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Reader, Store } from '../../src/store/store.ts';
import { callerWith } from './callers.ts';
import { assertConsistent } from './consistency.ts';
import { type Database, databases } from './databases.ts';
import { type OciClient, ociClient } from './oci-client.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';
import { type Client, wires } from './wires.ts';

/** A group that nobody else uses. */
export interface Team {
  readonly uid: string;
  /** What the names of its repos begin with: `my-org/team-1`. */
  readonly name: string;
}

/** What a test of the registry has to work with. */
export interface OciBench {
  readonly server: TestServer;
  /** The API, as the owner. */
  readonly api: Client;
  /** The registry, as the owner. */
  readonly owner: OciClient;
  /** The registry with any `authorization`, or with none. */
  as(authorization?: string): OciClient;
  /** The registry as somebody with a built-in role on a group. */
  withRole(role: string, group: string): Promise<OciClient>;
  newTeam(): Promise<Team>;
  /** What the server has written, read past the server. */
  readonly db: Reader;
}

const ORGANIZATION = 'my-org';
let teams = 0;

/** Runs a suite on every database; at its end the listing index must be right. */
export function onEveryDatabase(what: string, suite: (bench: OciBench) => void, options?: TestServerOptions): void {
  for (const database of databases) describe(`${what} on ${database.name}`, () => suite(benchOn(database, options)));
}

/** A server for one suite. */
export function benchOn(database: Database, options?: TestServerOptions): OciBench {
  let server: TestServer;
  let store: Store;
  let api: Client | undefined;
  const clients: OciClient[] = [];
  before(async () => {
    server = await startTestServer(database, options);
    store = await openStore(server.home);
  });
  after(async () => {
    for (const client of clients) client.close();
    api?.close();
    try {
      await assertConsistent(store.reader);
    } finally {
      await store.close();
      await server.remove();
    }
  });

  const as = (authorization?: string): OciClient => {
    const client = ociClient(server.url, authorization);
    clients.push(client);
    return client;
  };
  let owner: OciClient | undefined;
  return {
    get server() {
      return server;
    },
    get api() {
      api ??= wires[0]?.connect(server.url, server.token);
      if (!api) throw new Error('there is no wire');
      return api;
    },
    get owner() {
      owner ??= as(`Bearer ${server.token}`);
      return owner;
    },
    as,
    withRole: async (role, group) => as(`Bearer ${await (await callerWith(server, role, group)).token()}`),
    async newTeam() {
      const name = `team-${++teams}`;
      const parent = server.organization;
      const { uid } = await this.api.call(GroupsService.method.createGroup, { parent, group: { name } });
      return { uid, name: `${ORGANIZATION}/${name}` };
    },
    get db() {
      return store.reader;
    },
  };
}
