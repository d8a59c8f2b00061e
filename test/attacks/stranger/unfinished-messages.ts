import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { databases } from '../../support/databases.ts';
import { messageStart, openHttp2, openSocket, startCall } from '../../support/raw-connections.ts';
import { rejects } from '../../support/rejects.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { wires } from '../../support/wires.ts';

const PRIVATE_METHOD = '/chainguard.platform.iam.v2.GroupsService/CreateGroup';
const PUBLIC_METHOD = '/chainguard.platform.oidc.SecurityTokenService/Exchange';
/** The method verifies the token of the request itself, and refuses a request without one before its body is read. */
const JUNK = { authorization: 'Bearer junk' };
const MIB = 2 ** 20;
/** The memory for unauthenticated requests in these tests. */
const BUDGET = 1 * MIB;

for (const database of databases) {
  describe(`unfinished messages on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, {
        limits: { unauthenticatedBytes: BUDGET, unauthenticatedConnectionBytes: BUDGET / 2, publicRequestMs: 1_000 },
      });
    });
    after(() => server.remove());

    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

    /** The client of an honest user works throughout. */
    async function assertServed(): Promise<void> {
      for (const wire of wires) {
        const client = wire.connect(server.url, server.token);
        await client.call(GroupsService.method.getGroup, { uid: server.organization });
        client.close();
      }
    }

    for (const [name, path, headers, expected] of [
      ['without a token', PRIVATE_METHOD, {}, Code.UNAUTHENTICATED],
      ['with an invalid token', PRIVATE_METHOD, bearer('eyJhbGciOiJub25lIn0.e30.'), Code.UNAUTHENTICATED],
      ['to a method that needs no token', PUBLIC_METHOD, JUNK, Code.RESOURCE_EXHAUSTED],
    ] as const) {
      test(`100 unfinished messages of 4 MiB over gRPC ${name} are refused`, async (t) => {
        const session = await openHttp2(server.url);
        t.after(() => session.destroy());
        const calls = Array.from({ length: 100 }, () =>
          startCall(session, path, messageStart(4 * MIB, 100_000), headers),
        );
        const statuses = new Set(await Promise.all(calls.map(({ status }) => status)));
        assert.deepEqual(statuses, new Set([expected]));
        await assertServed();
      });
    }

    for (const [name, path] of [
      ['without a token', PRIVATE_METHOD],
      ['to a method that needs no token', PUBLIC_METHOD],
    ] as const) {
      test(`small unfinished messages over gRPC ${name} share a budget and a deadline`, async (t) => {
        const sessions = await Promise.all([openHttp2(server.url), openHttp2(server.url), openHttp2(server.url)]);
        t.after(() => sessions.forEach((session) => void session.destroy()));
        const calls = sessions.flatMap((session) =>
          Array.from({ length: 100 }, () =>
            startCall(session, path, messageStart(60_000, 16_000), path === PUBLIC_METHOD ? JUNK : {}),
          ),
        );
        await assertServed();
        const statuses = await Promise.all(calls.map(({ status }) => status));
        const count = (code: number): number => statuses.filter((status) => status === code).length;
        const refused = count(path === PRIVATE_METHOD ? Code.UNAUTHENTICATED : Code.RESOURCE_EXHAUSTED);
        assert.equal(refused + count(Code.DEADLINE_EXCEEDED), calls.length, `${statuses}`);
        assert.ok(count(Code.DEADLINE_EXCEEDED) <= BUDGET / 16_000, `${statuses}`);
        assert.ok(refused > 0);
        // What they took is free again.
        const next = startCall(sessions[0], PUBLIC_METHOD, messageStart(60_000, 16_000), JUNK);
        next.stream.end(Buffer.alloc(44_000, 'a'));
        assert.equal(await next.status, Code.INVALID_ARGUMENT);
      });
    }

    test('large headers and frames of one byte count too', async (t) => {
      const session = await openHttp2(server.url);
      t.after(() => session.destroy());
      const large = Array.from({ length: 100 }, (_, i) =>
        startCall(session, PUBLIC_METHOD, Buffer.alloc(0), { ...JUNK, 'x-large': `${i}`.repeat(20_000) }),
      );
      const statuses = await Promise.all(large.map(({ status }) => status));
      assert.ok(statuses.includes(Code.RESOURCE_EXHAUSTED), `${statuses}`);

      const { stream, status } = startCall(session, PUBLIC_METHOD, messageStart(60_000, 0), JUNK);
      for (let i = 0; i < 5_000 && !stream.closed; i++) {
        stream.write('a');
        await new Promise(setImmediate);
      }
      assert.equal(await status, Code.RESOURCE_EXHAUSTED);
    });

    test('a compressed message is refused when it decompresses to more than the method takes', async (t) => {
      const session = await openHttp2(server.url);
      t.after(() => session.destroy());
      const bomb = gzipSync(Buffer.alloc(4 * MIB));
      const message = Buffer.concat([messageStart(bomb.length, 0, true), bomb]);
      const gzip = { ...JUNK, 'grpc-encoding': 'gzip' };
      for (const [path, expected] of [
        [PRIVATE_METHOD, Code.UNAUTHENTICATED],
        [PUBLIC_METHOD, Code.RESOURCE_EXHAUSTED],
      ] as const) {
        const { stream, status } = startCall(session, path, message, gzip);
        stream.end();
        assert.equal(await status, expected, path);
      }
    });

    test('an authenticated client may send large and compressed messages, slowly', async (t) => {
      const session = await openHttp2(server.url);
      t.after(() => session.destroy());
      const rest = Buffer.alloc(1 * MIB - 10_000, 'a');
      const slow = startCall(session, PRIVATE_METHOD, messageStart(1 * MIB, 10_000), bearer(server.token));
      for (let at = 0; at < rest.length; at += 50_000) {
        slow.stream.write(rest.subarray(at, at + 50_000));
        await new Promise(setImmediate);
      }
      slow.stream.end();
      // The message is not valid protobuf.
      assert.equal(await slow.status, Code.INVALID_ARGUMENT);

      const packed = gzipSync(Buffer.alloc(100_000, 'a'));
      const message = Buffer.concat([messageStart(packed.length, 0, true), packed]);
      const headers = { ...bearer(server.token), 'grpc-encoding': 'gzip' };
      const compressed = startCall(session, PRIVATE_METHOD, message, headers);
      compressed.stream.end();
      assert.equal(await compressed.status, Code.INVALID_ARGUMENT);
    });

    for (const [path, authorization] of [
      ['/sts/exchange', JUNK.authorization],
      ['/v2/token', undefined],
    ] as const) {
      const post = (framing: string): string =>
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization ? `Authorization: ${authorization}\r\n` : ''}Content-Type: application/x-www-form-urlencoded\r\n${framing}\r\n\r\n`;

      test(`a body of more than 64 KiB to ${path} is refused before it is read`, async () => {
        const response = await fetch(`${server.url}${path}`, {
          method: 'POST',
          headers: { ...(authorization && { authorization }), 'content-type': 'application/x-www-form-urlencoded' },
          body: 'a'.repeat(64 * 1024 + 1),
        });
        assert.equal(response.status, 413);
      });

      test(`unfinished bodies to ${path} share a budget and a deadline`, async (t) => {
        const sockets = await Promise.all(Array.from({ length: 40 }, () => openSocket(server.url)));
        t.after(() => sockets.forEach((socket) => void socket.destroy()));
        const heads = sockets.map(async (socket) => {
          socket.write(post('Content-Length: 60000') + 'a'.repeat(55_000));
          for await (const chunk of socket) return String(chunk).slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3);
          return 'closed';
        });
        await assertServed();
        const statuses = await Promise.all(heads);
        const count = (status: string): number => statuses.filter((one) => one === status).length;
        assert.equal(count('429') + count('408'), sockets.length, `${statuses}`);
        assert.ok(count('408') <= BUDGET / 55_000, `${statuses}`);
        assert.ok(count('429') > 0);
      });

      test(`a body of ${path} in chunks of one byte is read like any other`, async (t) => {
        const socket = await openSocket(server.url);
        t.after(() => socket.destroy());
        socket.write(
          `${post('Transfer-Encoding: chunked\r\nConnection: close')}${'1\r\na\r\n'.repeat(20_000)}0\r\n\r\n`,
        );
        let received = '';
        for await (const chunk of socket) received += chunk;
        assert.match(received, /^HTTP\/1\.1 4(00|01) /);
      });
    }

    test('what needs a token is refused before its body is read', async () => {
      const client = wires.map((wire) => wire.connect(server.url, 'invalid'));
      for (const one of client) {
        const group = { name: 'a', description: 'a'.repeat(1 * MIB) };
        await rejects(
          one.call(GroupsService.method.createGroup, { parent: server.organization, group }),
          Code.UNAUTHENTICATED,
        );
        one.close();
      }
    });
  });
}
