import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  type FakeResponse,
  type ReceivedRequest,
  runInProcess,
  startFakeServer,
  temporaryDirectory,
} from '../cli.testing.ts';

const UID = '1'.repeat(40);
const whoAmI = {
  issuer: 'https://wharf.example.com',
  subject: UID,
  audience: ['https://wharf.example.com'],
  expiry: '2026-01-31T12:00:00.000Z',
  capabilities: [
    { group: { id: '2'.repeat(40), name: 'my-org' }, role: { id: '3'.repeat(40), name: 'viewer' }, capabilities: [] },
  ],
};

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();
const anHourAgo = (): string => new Date(Date.now() - 3_600_000).toISOString();

/** Starts a fake server that accepts every login. Its tokens expire at `expiry`. */
async function startIssuer(t: TestContext, expiry: () => string) {
  const requests: ReceivedRequest[] = [];
  let renewals = 0;
  const responses: Record<string, () => FakeResponse> = {
    '/sts/exchange': () => ({ json: { token: 'token-0', refreshToken: 'refresh-0', expiry: expiry() } }),
    '/sts/exchange_refresh_token': () => {
      renewals++;
      return {
        json: {
          token: { token: `token-${renewals}`, expiry: expiry() },
          refreshToken: { token: `refresh-${renewals}` },
        },
      };
    },
    '/auth/v1/ok': () => ({ json: whoAmI }),
    '/.well-known/openid-configuration': () => ({ json: { issuer: whoAmI.issuer } }),
  };
  const server = await startFakeServer(t, (request) => {
    requests.push(request);
    return responses[request.path]?.() ?? { status: 404, text: '' };
  });
  const configDirectory = temporaryDirectory(t);
  const idToken = join(configDirectory, 'id-token');
  writeFileSync(idToken, 'theirs\n');
  const wharf = (...args: string[]) =>
    runInProcess([...args, '--server', server], { XDG_CONFIG_HOME: configDirectory });
  return { wharf, requests, idToken: `@${idToken}` };
}

const form = ({ body }: ReceivedRequest): Record<string, string[]> =>
  Object.fromEntries(
    [...new Set(new URLSearchParams(body).keys())].map((key) => [key, new URLSearchParams(body).getAll(key)]),
  );

test('a login exchanges a token, shows the identity, and is used until it expires', async (t) => {
  const { wharf, requests, idToken } = await startIssuer(t, inAnHour);
  const login = await wharf('auth', 'login', '--id-token', idToken, '--identity', UID);
  assert.deepEqual([login.code, login.stderr], [0, '']);
  assert.match(login.stdout, new RegExp(`identity  ${UID}\n`));
  assert.match(login.stdout, /expires {3}2026-01-31T12:00:00Z\n/);
  assert.match(login.stdout, /\nGROUP +NAME +ROLE\n2{40} {2}my-org {2}viewer\n/);

  const [, exchange, ok] = requests.splice(0);
  assert.ok(exchange && ok);
  assert.deepEqual(
    [exchange.verb, exchange.path, form(exchange)],
    ['POST', '/sts/exchange', { aud: [whoAmI.issuer], identity: [UID] }],
  );
  assert.equal(exchange.headers.authorization, 'Bearer theirs');
  assert.equal(ok.headers.authorization, 'Bearer token-0');

  assert.equal((await wharf('auth', 'token')).stdout, 'token-0\n');
  assert.deepEqual(requests, [], 'a valid token is not renewed');
  assert.deepEqual(JSON.parse((await wharf('auth', 'status', '-o', 'json')).stdout), whoAmI);

  assert.match((await wharf('auth', 'logout')).stdout, /removed the login/);
  assert.match((await wharf('auth', 'logout')).stdout, /there was no login/);
});

test('an expired token is renewed with the latest refresh token', async (t) => {
  const { wharf, requests, idToken } = await startIssuer(t, anHourAgo);
  await wharf('auth', 'login', '--id-token', idToken, '--audience', 'one', '--audience', 'two');
  requests.splice(0);
  assert.equal((await wharf('auth', 'token')).stdout, 'token-1\n');
  assert.equal((await wharf('auth', 'token')).stdout, 'token-2\n');
  assert.deepEqual(
    requests.map((request) => [request.path, request.headers.authorization, form(request)]),
    [
      ['/sts/exchange_refresh_token', 'Bearer refresh-0', { aud: ['one', 'two'] }],
      ['/sts/exchange_refresh_token', 'Bearer refresh-1', { aud: ['one', 'two'] }],
    ],
  );
});

test('a restricted token is exchanged for the usual one', async (t) => {
  const { wharf, requests } = await startIssuer(t, inAnHour);
  const flags = ['--cap', 'groups.list', '--cap', 'roles.list', '--scope', UID, '--audience', 'robot'];
  const { stdout } = await wharf('auth', 'token', '--token', 'mine', ...flags);
  assert.equal(stdout, 'token-0\n');
  const [exchange] = requests;
  assert.equal(exchange?.headers.authorization, 'Bearer mine');
  assert.deepEqual(exchange && form(exchange), { aud: ['robot'], scopes: [UID], cap: ['groups.list', 'roles.list'] });
});

test('an ended login is an error with exit code 3', async (t) => {
  const refusal = { status: 401, text: JSON.stringify({ code: 16, message: 'Unauthenticated: log in again' }) };
  const server = await startFakeServer(t, ({ path }) =>
    path === '/sts/exchange'
      ? { json: { token: 'token', refreshToken: 'refresh', expiry: anHourAgo() } }
      : path === '/auth/v1/ok'
        ? { json: whoAmI }
        : refusal,
  );
  const env = { XDG_CONFIG_HOME: temporaryDirectory(t) };
  assert.equal((await runInProcess(['auth', 'login', '--id-token', 'theirs', '--server', server], env)).code, 0);
  const { code, stdout, stderr } = await runInProcess(['iam', 'groups', 'list', '--server', server], env);
  assert.deepEqual([code, stdout], [3, '']);
  assert.match(stderr, /the login at http:\S+ has ended \(Unauthenticated: log in again\): log in again with/);
});

test('explain shows which binding allows a call, or which one is missing', async (t) => {
  const group = '2'.repeat(40);
  const responses: Record<string, object> = {
    'groups.list': {
      identity: UID,
      allowed: true,
      explanation: 'A role binding gives it.',
      bindings: [
        { uid: `${group}/${'4'.repeat(16)}`, groupUid: group, roleUid: '3'.repeat(40), roleName: 'viewer' },
        { groupUid: group },
      ],
    },
    'groups.create': {
      identity: UID,
      allowed: false,
      explanation: 'No role binding gives it.',
      groups: [group],
      roles: [
        { uid: '5'.repeat(40), name: 'owner' },
        { uid: '6'.repeat(40), name: 'editor' },
      ],
    },
  };
  const server = await startFakeServer(t, ({ path, query }) => {
    assert.deepEqual([path, query.get('uid'), query.get('identity')], ['/wharfinger/v1/access:explain', group, UID]);
    return { json: responses[query.get('capability') ?? ''] };
  });
  const explain = (capability: string, ...flags: string[]) =>
    runInProcess([
      'auth',
      'explain',
      capability,
      group,
      '--identity',
      UID,
      '--server',
      server,
      '--token',
      'x',
      ...flags,
    ]);

  const yes = await explain('groups.list');
  assert.equal(yes.code, 0);
  assert.match(
    yes.stdout,
    /^yes: A role binding gives it\.\n\nBINDING +ROLE +GROUP\n2{40}\/4{16} +viewer +2{40}\n\(hidden from you\) +2{40}\n$/,
  );
  const no = await explain('groups.create');
  assert.equal(no.code, 0);
  assert.match(no.stdout, /^no: No role binding gives it\.\n\n.*owner, editor\n.*\n {2}2{40}\n$/);
  assert.deepEqual(JSON.parse((await explain('groups.list', '-o', 'json')).stdout), responses['groups.list']);
});
