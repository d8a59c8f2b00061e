import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { standIn } from '../cli.testing.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { send } from './http.ts';

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

test('a certificate is trusted when its CA is named, and not before', async (t) => {
  const server = await secureServer(t);
  const request = { verb: 'GET', path: '/', server };
  await assert.rejects(send(request), unavailable(/certificate of https:.* is not trusted .*--ca/));
  assert.equal((await send({ ...request, ca: pem('cert') })).text, 'hello');
});

test('a server that does not answer in time is given up', async (t) => {
  const silent = createSocketServer((socket) => t.after(() => socket.destroy())).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const request = { verb: 'GET', path: '/', server, patienceMs: 50 };
  await assert.rejects(send(request), unavailable(/did not answer within 0.05 s/));
});

test('a redirection is not followed: the token is for one server', async (t) => {
  let hits = 0;
  const server = await standIn(t, () => {
    hits++;
    return { status: 307, text: '' };
  });
  const answer = await send({ verb: 'GET', path: '/', server, headers: { authorization: 'Bearer x' } });
  assert.deepEqual([answer.status, hits], [307, 1]);
});

test('an address that makes no sense has a reason', async (t) => {
  const plain = await standIn(t, () => ({ status: 200, text: '' }));
  const secure = plain.replace('http:', 'https:');
  await assert.rejects(send({ verb: 'GET', path: '/', server: secure }), unavailable(/is it an http:\/\/ address/));
  const unknown = 'http://host.invalid';
  await assert.rejects(
    send({ verb: 'GET', path: '/', server: unknown }),
    unavailable(/host of .* is not known|cannot reach/),
  );
});
