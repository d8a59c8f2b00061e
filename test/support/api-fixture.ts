import { after, before, describe } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Reader, Store } from '../../src/store/store.ts';
import { assertConsistent } from './consistency.ts';
import { databases } from './databases.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './server.ts';
import { type Client, type Wire, wires } from './wires.ts';

/** A server and its clients, on one database and over one wire. */
export interface ApiFixture {
  readonly server: TestServer;
  /** The uid of the organization that the first start created. */
  readonly org: string;
  readonly wire: Wire['name'];
  /** A client of the owner. */
  readonly api: Client;
  /** A client that sends this token. */
  as(token: string): Client;
  /** Creates a group for one test in `parent`, which defaults to the organization, and returns its uid. */
  newGroup(parent?: string): Promise<string>;
  /** Creates an organization for one test, and returns its uid. */
  newOrganization(): Promise<string>;
  /** Reads the database directly. */
  readonly db: Reader;
}

let groupCount = 0;

/**
 * Runs a suite on every database and over every wire. The wires of a database share one server. After both, the listing
 * index must be consistent with the resources.
 */
export function onEveryDatabaseAndWire(
  name: string,
  suite: (fixture: ApiFixture) => void,
  options: TestServerOptions = {},
): void {
  for (const database of databases) {
    describe(`${name} on ${database.name}`, () => {
      let server: TestServer;
      let store: Store;
      before(async () => {
        server = await startTestServer(database, options);
        store = await openStore(server.dataLocation);
      });
      after(async () => {
        try {
          await assertConsistent(store.reader);
        } finally {
          await store.close();
          await server.remove();
        }
      });

      for (const wire of wires) {
        describe(`over ${wire.name}`, () => {
          const clients = new Map<string, Client>();
          const as = (token: string): Client => {
            const client = clients.get(token) ?? wire.connect(server.url, token);
            clients.set(token, client);
            return client;
          };
          after(() => {
            for (const client of clients.values()) client.close();
          });
          const newGroup = async (parent = server.organization): Promise<string> => {
            const group = { name: `group ${++groupCount}` };
            return (await as(server.token).call(GroupsService.method.createGroup, { parent, group })).uid;
          };
          const newOrganization = async (): Promise<string> => {
            const group = { name: `organization ${++groupCount}` };
            return (await as(server.token).call(GroupsService.method.createGroup, { group })).uid;
          };
          suite({
            get server() {
              return server;
            },
            get org() {
              return server.organization;
            },
            wire: wire.name,
            get api() {
              return as(server.token);
            },
            get db() {
              return store.reader;
            },
            as,
            newGroup,
            newOrganization,
          });
        });
      }
    });
  }
}
