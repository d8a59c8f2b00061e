import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { bodyChunks, freeChunk, readBody } from './body.ts';

const STALL_MS = 300;

/** Lets `send` write a request, and answers what `take` makes of it. */
async function through<T>(
  t: TestContext,
  send: (write: (piece: string) => void, end: () => void) => Promise<void>,
  take: (req: IncomingMessage) => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const server = createServer((req, res) => {
    take(req)
      .then(resolve, reject)
      .finally(() => {
        req.resume();
        res.end();
      });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const outgoing = request({ port: (server.address() as AddressInfo).port, method: 'POST' });
  outgoing.on('error', () => {});
  await send(
    (piece) => outgoing.write(piece),
    () => outgoing.end(),
  );
  return promise;
}

async function all(source: AsyncIterable<Buffer>, pauseMs = 0): Promise<string> {
  let text = '';
  for await (const chunk of source) {
    text += chunk;
    if (pauseMs > 0) await delay(pauseMs);
  }
  return text;
}

test('a slow body that makes progress is accepted, whatever its total time', async (t) => {
  const send = async (write: (piece: string) => void, end: () => void) => {
    for (let piece = 0; piece < 5; piece++) {
      write(String(piece));
      await delay(STALL_MS / 3);
    }
    end();
  };
  assert.equal(await through(t, send, (req) => all(bodyChunks(req, STALL_MS))), '01234');
});

test('a body that stalls is aborted', async (t) => {
  const send = async (write: (piece: string) => void) => write('beginning');
  await assert.rejects(
    through(t, send, (req) => all(bodyChunks(req, STALL_MS))),
    /no byte arrived for 300 ms/,
  );
});

test('the time that the consumer takes does not count', async (t) => {
  const send = async (write: (piece: string) => void, end: () => void) => {
    write('at once');
    end();
  };
  assert.equal(await through(t, send, (req) => all(bodyChunks(req, STALL_MS), STALL_MS * 2)), 'at once');
});

test('a small body is read, a large or incomplete one is refused', async (t) => {
  const sending = (text: string) => async (write: (piece: string) => void, end: () => void) => {
    write(text);
    end();
  };
  assert.equal((await through(t, sending('12345'), (req) => readBody(req, 5))).toString(), '12345');
  await assert.rejects(
    through(t, sending('123456'), (req) => readBody(req, 5)),
    { status: 413, code: 'SIZE_INVALID' },
  );
  const breaking = (req: IncomingMessage) => {
    setImmediate(() => req.destroy(new Error('gone')));
    return readBody(req, 100);
  };
  await assert.rejects(
    through(t, async (write) => write('half'), breaking),
    { status: 408 },
  );
});

test('only memory that belongs to the chunk alone is freed', () => {
  const whole = Buffer.allocUnsafeSlow(64).fill(1);
  const part = Buffer.allocUnsafeSlow(64).fill(2);
  freeChunk(part.subarray(0, 32));
  freeChunk(part.subarray(32));
  freeChunk(whole);
  assert.deepEqual([whole.length, part.length, part[63]], [0, 64, 2]);
});
