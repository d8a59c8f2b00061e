import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Answer, type Received, runHere, scratch, standIn } from '../cli.testing.ts';

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

/** A server that logs everybody in, with tokens that end when `expiry` says. */
async function issuing(t: TestContext, expiry: () => string) {
  const seen: Received[] = [];
  let turn = 0;
  const answers: Record<string, () => Answer> = {
    '/sts/exchange': () => ({ json: { token: 'token-0', refreshToken: 'refresh-0', expiry: expiry() } }),
    '/sts/exchange_refresh_token': () => {
      turn++;
      return {
        json: { token: { token: `token-${turn}`, expiry: expiry() }, refreshToken: { token: `refresh-${turn}` } },
      };
    },
    '/auth/v1/ok': () => ({ json: whoAmI }),
    '/.well-known/openid-configuration': () => ({ json: { issuer: whoAmI.issuer } }),
  };
  const server = await standIn(t, (request) => {
    seen.push(request);
    return answers[request.path]?.() ?? { status: 404, text: '' };
  });
  const home = scratch(t);
  const idToken = join(home, 'id-token');
  writeFileSync(idToken, 'theirs\n');
  const wharf = (...args: string[]) => runHere([...args, '--server', server], { XDG_CONFIG_HOME: home });
  return { wharf, seen, idToken: `@${idToken}` };
}

const form = ({ body }: Received): Record<string, string[]> =>
  Object.fromEntries(
    [...new Set(new URLSearchParams(body).keys())].map((key) => [key, new URLSearchParams(body).getAll(key)]),
  );

test('a login trades a token, says who you are, and is used until its end', async (t) => {
  const { wharf, seen, idToken } = await issuing(t, inAnHour);
  const login = await wharf('auth', 'login', '--id-token', idToken, '--identity', UID);
  assert.deepEqual([login.code, login.stderr], [0, '']);
  assert.match(login.stdout, new RegExp(`identity  ${UID}\n`));
  assert.match(login.stdout, /expires {3}2026-01-31T12:00:00Z\n/);
  assert.match(login.stdout, /\nGROUP +NAME +ROLE\n2{40} {2}my-org {2}viewer\n/);

  const [, exchange, ok] = seen.splice(0);
  assert.ok(exchange && ok);
  assert.deepEqual(
    [exchange.verb, exchange.path, form(exchange)],
    ['POST', '/sts/exchange', { aud: [whoAmI.issuer], identity: [UID] }],
  );
  assert.equal(exchange.headers.authorization, 'Bearer theirs');
  assert.equal(ok.headers.authorization, 'Bearer token-0');

  assert.equal((await wharf('auth', 'token')).stdout, 'token-0\n');
  assert.deepEqual(seen, [], 'a token that is still good is not renewed');
  assert.deepEqual(JSON.parse((await wharf('auth', 'status', '-o', 'json')).stdout), whoAmI);

  assert.match((await wharf('auth', 'logout')).stdout, /is forgotten/);
  assert.match((await wharf('auth', 'logout')).stdout, /there was no login/);
});

test('a token that has expired is renewed with the refresh token, each time with the newest', async (t) => {
  const { wharf, seen, idToken } = await issuing(t, anHourAgo);
  await wharf('auth', 'login', '--id-token', idToken, '--audience', 'one', '--audience', 'two');
  seen.splice(0);
  assert.equal((await wharf('auth', 'token')).stdout, 'token-1\n');
  assert.equal((await wharf('auth', 'token')).stdout, 'token-2\n');
  assert.deepEqual(
    seen.map((request) => [request.path, request.headers.authorization, form(request)]),
    [
      ['/sts/exchange_refresh_token', 'Bearer refresh-0', { aud: ['one', 'two'] }],
      ['/sts/exchange_refresh_token', 'Bearer refresh-1', { aud: ['one', 'two'] }],
    ],
  );
});

test('a token for less is exchanged for the usual one', async (t) => {
  const { wharf, seen } = await issuing(t, inAnHour);
  const flags = ['--cap', 'groups.list', '--cap', 'roles.list', '--scope', UID, '--audience', 'robot'];
  const { stdout } = await wharf('auth', 'token', '--token', 'mine', ...flags);
  assert.equal(stdout, 'token-0\n');
  const [exchange] = seen;
  assert.equal(exchange?.headers.authorization, 'Bearer mine');
  assert.deepEqual(exchange && form(exchange), { aud: ['robot'], scopes: [UID], cap: ['groups.list', 'roles.list'] });
});

test('a login that has ended says so, with exit code 3', async (t) => {
  const refusal = { status: 401, text: JSON.stringify({ code: 16, message: 'Unauthenticated: log in again' }) };
  const server = await standIn(t, ({ path }) =>
    path === '/sts/exchange'
      ? { json: { token: 'token', refreshToken: 'refresh', expiry: anHourAgo() } }
      : path === '/auth/v1/ok'
        ? { json: whoAmI }
        : refusal,
  );
  const env = { XDG_CONFIG_HOME: scratch(t) };
  assert.equal((await runHere(['auth', 'login', '--id-token', 'theirs', '--server', server], env)).code, 0);
  const { code, stdout, stderr } = await runHere(['iam', 'groups', 'list', '--server', server], env);
  assert.deepEqual([code, stdout], [3, '']);
  assert.match(stderr, /the login at http:\S+ has ended \(Unauthenticated: log in again\): log in again with/);
});

test('explain says in plain words what allows something, or what is missing', async (t) => {
  const group = '2'.repeat(40);
  const answers: Record<string, object> = {
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
  const server = await standIn(t, ({ path, query }) => {
    assert.deepEqual([path, query.get('uid'), query.get('identity')], ['/wharfinger/v1/access:explain', group, UID]);
    return { json: answers[query.get('capability') ?? ''] };
  });
  const explain = (capability: string, ...flags: string[]) =>
    runHere(['auth', 'explain', capability, group, '--identity', UID, '--server', server, '--token', 'x', ...flags]);

  const yes = await explain('groups.list');
  assert.equal(yes.code, 0);
  assert.match(
    yes.stdout,
    /^yes: A role binding gives it\.\n\nBINDING +ROLE +GROUP\n2{40}\/4{16} +viewer +2{40}\n\(hidden from you\) +2{40}\n$/,
  );
  const no = await explain('groups.create');
  assert.equal(no.code, 0);
  assert.match(no.stdout, /^no: No role binding gives it\.\n\n.*owner, editor\n.*\n {2}2{40}\n$/);
  assert.deepEqual(JSON.parse((await explain('groups.list', '-o', 'json')).stdout), answers['groups.list']);
});
