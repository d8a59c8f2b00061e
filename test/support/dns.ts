import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';

/** Returns the address records of a name: an empty list if the name does not exist, undefined to send no response. */
export type DnsRecords = (name: string, family: 4 | 6) => readonly Buffer[] | undefined;

export interface TestDns {
  /** A resolver that queries only this server. */
  resolver(options?: { timeout: number; tries: number }): Resolver;
  /** The names that were queried, in lower case with the address family: `name.example/4`. */
  readonly queries: string[];
  close(): Promise<void>;
}

/** Address families by record type: A and AAAA. */
const FAMILIES = new Map([
  [1, 4],
  [28, 6],
] as const);

/** Starts a DNS server on this machine (RFC 1035, section 4.1). It supports queries with one question. */
export async function startDns(recordsOf: DnsRecords): Promise<TestDns> {
  const socket = createSocket('udp4');
  const queries: string[] = [];
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
      at += length + 1;
    }
    const type = query.readUInt16BE(at + 1);
    const family = FAMILIES.get(type as 1 | 28);
    if (family === undefined) return;
    const name = labels.join('.');
    queries.push(`${name}/${family}`);
    const records = recordsOf(name, family);
    if (records === undefined) return;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    // The flags of a response: NOERROR, or NXDOMAIN if there is no address.
    header.writeUInt16BE(records.length > 0 ? 0x8180 : 0x8183, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    const answers = records.map((data) => {
      const fixed = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
      return Buffer.concat([fixed, data]);
    });
    socket.send(Buffer.concat([header, query.subarray(12, at + 5), ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    queries,
    resolver(options = { timeout: 1_000, tries: 1 }) {
      const resolver = new Resolver(options);
      resolver.setServers([`127.0.0.1:${socket.address().port}`]);
      return resolver;
    },
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

/** The data of an A record. */
export const v4 = (address: string): Buffer => Buffer.from(address.split('.').map(Number));

/** The data of an AAAA record. The address must have all eight groups. */
export const v6 = (address: string): Buffer =>
  Buffer.from(
    address.split(':').flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]),
  );
