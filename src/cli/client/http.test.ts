import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { startFakeServer } from '../cli.testing.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { sendRequest } from './http.ts';

const pem = (name: string): string =>
  readFileSync(new URL(`../../../test/data/tls/${name}.pem`, import.meta.url), 'utf8');

async function secureServer(t: TestContext): Promise<string> {
  const server = createServer({ cert: pem('cert'), key: pem('key') }, (_req, res) => res.end('hello'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  return `https://localhost:${(server.address() as AddressInfo).port}`;
}

const unavailable = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CliError);
  assert.equal(error.exitCode, ExitCode.unavailable);
  assert.match(error.message, words);
  return true;
};

test('a certificate is trusted only when its CA is given', async (t) => {
  const server = await secureServer(t);
  const request = { verb: 'GET', path: '/', server };
  await assert.rejects(sendRequest(request), unavailable(/certificate of https:.* is not trusted .*--ca/));
  assert.equal((await sendRequest({ ...request, ca: pem('cert') })).text, 'hello');
});

test('a request times out', async (t) => {
  const silent = createSocketServer((socket) => t.after(() => socket.destroy())).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const request = { verb: 'GET', path: '/', server, timeoutMs: 50 };
  await assert.rejects(sendRequest(request), unavailable(/did not respond within 0.05 s/));
});

test('a redirect is not followed, so that the token is sent to one server only', async (t) => {
  let hits = 0;
  const server = await startFakeServer(t, () => {
    hits++;
    return { status: 307, text: '' };
  });
  const response = await sendRequest({ verb: 'GET', path: '/', server, headers: { authorization: 'Bearer x' } });
  assert.deepEqual([response.status, hits], [307, 1]);
});

test('an unusable address is explained', async (t) => {
  const plain = await startFakeServer(t, () => ({ status: 200, text: '' }));
  const secure = plain.replace('http:', 'https:');
  await assert.rejects(
    sendRequest({ verb: 'GET', path: '/', server: secure }),
    unavailable(/is it an http:\/\/ address/),
  );
  const unknown = 'http://host.invalid';
  await assert.rejects(
    sendRequest({ verb: 'GET', path: '/', server: unknown }),
    unavailable(/host of .* is unknown|cannot reach/),
  );
});
