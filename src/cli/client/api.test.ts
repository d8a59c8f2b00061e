import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { PingService } from '../../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { SecurityTokenService } from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { type ReceivedRequest, startFakeServer } from '../cli.testing.ts';
import { type CliError, ExitCode } from '../exit-codes.ts';
import { createApi } from './api.ts';

const { createGroup, updateGroup, listGroups, deleteGroup } = GroupsService.method;
const UID = `${'0'.repeat(40)}/${'1'.repeat(16)}`;

const options = { ca: undefined, token: async () => 'secret' };

test('a call uses its route, with fields in the query and the resource in the body', async (t) => {
  const requests: ReceivedRequest[] = [];
  const server = await startFakeServer(t, (request) => {
    requests.push(request);
    return { json: { uid: UID } };
  });
  const api = createApi({ ...options, server });
  await api.call(updateGroup, { path: [UID], fields: { update_mask: 'name' }, body: { name: 'x' } });
  await api.call(createGroup, { path: [''], body: {} });
  await api.call(listGroups, { fields: { 'uidp.ids': ['a', 'b'], skip: 0, name: undefined } });
  assert.deepEqual(
    requests.map(({ verb, path, query, body }) => `${verb} ${path}?${query} ${body}`),
    [
      `PATCH /iam/v2/groups/${UID}?update_mask=name {"name":"x"}`,
      'POST /iam/v2/groups/? {}',
      'GET /iam/v2/groups?uidp.ids=a&uidp.ids=b&skip=0 ',
    ],
  );
  assert.ok(requests.every(({ headers }) => headers.authorization === 'Bearer secret'));
});

test('the token exchange takes a form and its own token; a public method sends none', async (t) => {
  const requests: ReceivedRequest[] = [];
  const server = await startFakeServer(t, (request) => {
    requests.push(request);
    return { json: {} };
  });
  const api = createApi({ ...options, server });
  await api.call(SecurityTokenService.method.exchange, { fields: { aud: ['a', 'b'] }, token: 'theirs' });
  await api.call(PingService.method.ping);
  const [exchange, ping] = requests;
  assert.deepEqual([exchange?.body, exchange?.query.size], ['aud=a&aud=b', 0]);
  assert.equal(exchange?.headers['content-type'], 'application/x-www-form-urlencoded');
  assert.equal(exchange?.headers.authorization, 'Bearer theirs');
  assert.equal(ping?.headers.authorization, undefined);
});

test('a value that is not a uid cannot select another path', async () => {
  const api = createApi({ ...options, server: 'http://127.0.0.1:9' });
  for (const uid of ['..', '../identities', 'a//b', 'a/./b', '/a']) {
    await assert.rejects(api.call(deleteGroup, { path: [uid] }), (error: CliError) => {
      assert.equal(error.exitCode, ExitCode.usage, uid);
      return true;
    });
  }
});

test('a token with a line break is refused by the client, and not printed', async () => {
  const api = createApi({ ...options, server: 'http://127.0.0.1:9', token: async () => 'sec\nret' });
  await assert.rejects(api.call(listGroups), (error: CliError) => {
    assert.equal(error.exitCode, ExitCode.usage);
    assert.ok(!error.message.includes('ret'));
    return true;
  });
});

test('a response must be a JSON object or empty', async (t) => {
  const answers = ['', '[]', 'pong', 'null'];
  const server = await startFakeServer(t, ({ path }) => ({ status: 200, text: answers[Number(path.at(-1))] ?? '' }));
  const api = createApi({ ...options, server });
  assert.deepEqual(await api.call(deleteGroup, { path: ['0'] }), {});
  for (const uid of ['1', '2', '3']) await assert.rejects(api.call(deleteGroup, { path: [uid] }), /not a Wharfinger/);
});
