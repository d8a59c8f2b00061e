import { after, before, describe } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Reader, Store } from '../../src/store/store.ts';
import { callerWithRole } from './callers.ts';
import { assertConsistent } from './consistency.ts';
import { type Database, databases } from './databases.ts';
import { type OciClient, ociClient } from './oci-client.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';
import { type Client, wires } from './wires.ts';

/** A group for one test. */
export interface Team {
  readonly uid: string;
  /** The path of the group, which is the prefix of its repo names: `my-org/team-1`. */
  readonly name: string;
}

/** A server and its clients for tests of the OCI registry. */
export interface OciFixture {
  readonly server: TestServer;
  /** An API client of the owner. */
  readonly api: Client;
  /** A registry client of the owner. */
  readonly owner: OciClient;
  /** A registry client that sends `authorization`, or no credentials. */
  as(authorization?: string): OciClient;
  /** A registry client of a new identity with a built-in role at a group. */
  withRole(role: string, group: string): Promise<OciClient>;
  newTeam(): Promise<Team>;
  /** Reads the database directly. */
  readonly db: Reader;
}

const ORGANIZATION = 'my-org';
let teamCount = 0;

/** Runs a suite on every database. After the suite, the listing index must be consistent with the resources. */
export function onEveryDatabase(name: string, suite: (fixture: OciFixture) => void, options?: TestServerOptions): void {
  for (const database of databases)
    describe(`${name} on ${database.name}`, () => suite(createOciFixture(database, options)));
}

/** Starts a server before the current suite, and checks and removes its data after it. Call it inside of `describe`. */
export function createOciFixture(database: Database, options?: TestServerOptions): OciFixture {
  let server: TestServer;
  let store: Store;
  let api: Client | undefined;
  const clients: OciClient[] = [];
  before(async () => {
    server = await startTestServer(database, options);
    store = await openStore(server.dataLocation);
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
      if (!api) throw new Error('no wire is defined');
      return api;
    },
    get owner() {
      owner ??= as(`Bearer ${server.token}`);
      return owner;
    },
    as,
    withRole: async (role, group) => as(`Bearer ${await (await callerWithRole(server, role, group)).token()}`),
    async newTeam() {
      const name = `team-${++teamCount}`;
      const parent = server.organization;
      const { uid } = await this.api.call(GroupsService.method.createGroup, { parent, group: { name } });
      return { uid, name: `${ORGANIZATION}/${name}` };
    },
    get db() {
      return store.reader;
    },
  };
}
