import { after, before, describe } from 'node:test';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Reader, Store } from '../../src/store/store.ts';
import { assertConsistent } from './consistency.ts';
import { databases } from './databases.ts';
import { startTestServer, type TestServer } from './server.ts';
import { type Client, type Wire, wires } from './wires.ts';

/** What a test has to work with. */
export interface Bench {
  readonly server: TestServer;
  /** The organization of the server's first start. */
  readonly org: string;
  readonly wire: Wire['name'];
  /** Calls over this wire, as the owner unless told otherwise. */
  readonly api: Client;
  /** The same over the same wire as somebody else. */
  as(token: string): Client;
  /** The uid of a group that nobody else uses, in the organization or below `parent`. */
  newGroup(parent?: string): Promise<string>;
  /** What the server has written, read past the server. */
  readonly db: Reader;
}

let groups = 0;

/** Runs a suite on every database and over every wire. Wires share a server; at its end the listing index must be right. */
export function everywhere(what: string, suite: (bench: Bench) => void): void {
  for (const database of databases) {
    describe(`${what} on ${database.name}`, () => {
      let server: TestServer;
      let store: Store;
      before(async () => {
        server = await startTestServer(database);
        store = await openStore(server.home);
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
            const group = { name: `group ${++groups}` };
            return (await as(server.token).call(GroupsService.method.createGroup, { parent, group })).uid;
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
          });
        });
      }
    });
  }
}
