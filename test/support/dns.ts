import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';

/** What a name is answered with; undefined for no answer at all, and nothing for a name that is not there. */
export type Answers = (name: string, family: 4 | 6) => readonly Buffer[] | undefined;

export interface TestDns {
  /** Asks this server only. */
  resolver(options?: { timeout: number; tries: number }): Resolver;
  /** The names that were asked for, in lower case: `name.example/4`. */
  readonly asked: string[];
  close(): Promise<void>;
}

const TYPES = new Map([
  [1, 4],
  [28, 6],
] as const);

/** A name server on this machine (RFC 1035, section 4.1; one question at a time, as resolvers ask). */
export async function startDns(answers: Answers): Promise<TestDns> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
      at += length + 1;
    }
    const type = query.readUInt16BE(at + 1);
    const family = TYPES.get(type as 1 | 28);
    if (family === undefined) return;
    const name = labels.join('.');
    asked.push(`${name}/${family}`);
    const found = answers(name, family);
    if (found === undefined) return;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    // An answer; without any address, there is no such name.
    header.writeUInt16BE(found.length > 0 ? 0x8180 : 0x8183, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(found.length, 6);
    const records = found.map((data) => {
      const fixed = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
      return Buffer.concat([fixed, data]);
    });
    socket.send(Buffer.concat([header, query.subarray(12, at + 5), ...records]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    asked,
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

/** An IPv4 address as a record has it. */
export const v4 = (address: string): Buffer => Buffer.from(address.split('.').map(Number));

/** An IPv6 address, with all of its eight groups. */
export const v6 = (address: string): Buffer =>
  Buffer.from(
    address.split(':').flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]),
  );
