import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { credentials, makeClientConstructor } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';
import { Code } from '../../base/errors.ts';
import { services } from '../../contract/method-table.ts';
import { startServer } from '../server.testing.ts';

const Health = makeClientConstructor(service, 'Health');

function healthClient(t: TestContext, address: string) {
  const client = new Health(address, credentials.createInsecure());
  t.after(() => client.close());
  const unary = (name: string) => promisify(client[name]?.bind(client) ?? assert.fail(name));
  return {
    check: unary('check') as (request: { service: string }) => Promise<unknown>,
    list: unary('list') as (request: object) => Promise<{ statuses: object }>,
    watch: (request: { service: string }) => client.watch?.(request) ?? assert.fail('watch'),
  };
}

test('the server and each of its services are SERVING', async (t) => {
  const { address } = await startServer(t);
  const { check, list } = healthClient(t, address);
  const names = ['', ...services.map(({ typeName }) => typeName)];
  for (const name of names) assert.deepEqual(await check({ service: name }), { status: 'SERVING' }, name);
  assert.deepEqual(Object.keys((await list({})).statuses).sort(), names.sort());
  await assert.rejects(check({ service: 'no.such.Service' }), { code: Code.NOT_FOUND });
});

test('a watching client receives NOT_SERVING when the server stops, and does not delay the stop', async (t) => {
  const { address, stop } = await startServer(t);
  const { watch } = healthClient(t, address);
  const server = watch({ service: '' });
  const unknown = watch({ service: 'no.such.Service' });
  assert.deepEqual(await once(server, 'data'), [{ status: 'SERVING' }]);
  assert.deepEqual(await once(unknown, 'data'), [{ status: 'SERVICE_UNKNOWN' }]);
  unknown.cancel();
  unknown.on('error', () => {});
  const received = once(server, 'data');
  const ended = once(server, 'end');
  await stop();
  assert.deepEqual(await received, [{ status: 'NOT_SERVING' }]);
  await ended;
});
