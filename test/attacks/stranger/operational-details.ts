import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { databases } from '../../support/databases.ts';
import { messageStart, openHttp2, startCall } from '../../support/raw-connections.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const HEALTH = '/grpc.health.v1.Health/Check';
/** ServerReflectionRequest with an empty list_services. */
const listServices = Buffer.concat([messageStart(2, 0), Buffer.from([0x3a, 0])]);

async function callStatus(url: string, path: string, message: Uint8Array, headers: Record<string, string> = {}) {
  const session = await openHttp2(url);
  const { stream, status } = startCall(session, path, message, headers);
  stream.end();
  const code = await status;
  session.destroy();
  return code;
}

const read = async (url: string | undefined, path: string): Promise<{ status: number; text: string }> => {
  const response = await fetch(`${url}${path}`);
  return { status: response.status, text: await response.text() };
};

for (const database of databases) {
  for (const withPort of [false, true]) {
    describe(`a server beyond loopback ${withPort ? 'with' : 'without'} an operations port on ${database.name}`, () => {
      let server: TestServer;
      before(async () => {
        const env = { WHARF_LISTEN: '0.0.0.0:0', ...(withPort && { WHARF_OPERATIONS_LISTEN: '127.0.0.1:0' }) };
        server = await startTestServer(database, { env });
      });
      after(() => server.remove());

      test('load balancers can check it without a token', async () => {
        assert.deepEqual(await read(server.url, '/healthz'), { status: 200, text: '{"status":"ok"}\n' });
        assert.deepEqual(await read(server.url, '/readyz'), { status: 200, text: '{"status":"ok"}\n' });
        assert.equal(await callStatus(server.url, HEALTH, messageStart(0, 0)), Code.OK);
      });

      test('it does not show metrics on its port', async () => {
        const { status, text } = await read(server.url, '/metrics');
        assert.equal(status, 404);
        assert.match(text, /WHARF_OPERATIONS_LISTEN/);
        assert.doesNotMatch(text, /wharf_requests_total/);
      });

      test('reflection needs a token', async () => {
        const bearer = { authorization: `Bearer ${server.token}` };
        for (const path of [REFLECTION, REFLECTION.replace('v1', 'v1alpha')]) {
          assert.equal(await callStatus(server.url, path, listServices), Code.UNAUTHENTICATED);
          assert.equal(await callStatus(server.url, path, listServices, bearer), Code.OK);
        }
      });

      if (!withPort) return;
      test('the operations port has metrics, readiness and reflection, and no API', async () => {
        const { operationsUrl } = server;
        assert.ok(operationsUrl);
        assert.match((await read(operationsUrl, '/metrics')).text, /^wharf_build_info/m);
        assert.equal((await read(operationsUrl, '/readyz')).status, 200);
        assert.equal((await read(operationsUrl, '/healthz')).status, 200);
        assert.equal((await read(operationsUrl, '/iam/v2/groups')).status, 404);
        assert.equal(await callStatus(operationsUrl, REFLECTION, listServices), Code.OK);
        assert.equal(await callStatus(operationsUrl, HEALTH, messageStart(0, 0)), Code.OK);
        const ping = '/chainguard.platform.ping.v2.PingService/Ping';
        assert.equal(await callStatus(operationsUrl, ping, messageStart(0, 0)), Code.UNIMPLEMENTED);
      });
    });
  }
}
