import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { scratch } from '../cli.testing.ts';
import { findLogin, forgetLogin, freshLogin, type Login, saveLogin } from './logins.ts';

const SERVER = 'https://wharf.example.com';
const NOW = Date.parse('2026-01-31T12:00:00Z');
const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();

function home(t: TestContext): void {
  const before = process.env.XDG_CONFIG_HOME;
  process.env.XDG_CONFIG_HOME = scratch(t);
  t.after(() => {
    if (before === undefined) delete process.env.XDG_CONFIG_HOME;
    else process.env.XDG_CONFIG_HOME = before;
  });
}

const never = async (): Promise<Login> => assert.fail('there is nothing to renew');

test('logins are kept for each server', async (t) => {
  home(t);
  assert.equal(await findLogin(SERVER), undefined);
  await Promise.all(['a', 'b', 'c'].map((name) => saveLogin(`https://${name}`, { token: name, audiences: [name] })));
  assert.deepEqual(await findLogin('https://b'), { token: 'b', audiences: ['b'] });
  assert.equal(await forgetLogin('https://b'), true);
  assert.equal(await forgetLogin('https://b'), false);
  assert.equal(await findLogin('https://b'), undefined);
  assert.ok(await findLogin('https://c'));
});

test('a token is renewed shortly before its end, and kept', async (t) => {
  home(t);
  const login = { token: 'old', audiences: [SERVER], refreshToken: 'r1', expires: at(5) };
  await saveLogin(SERVER, login);
  assert.deepEqual(await freshLogin(SERVER, never, NOW), login);
  const renewed = { token: 'new', audiences: [SERVER], refreshToken: 'r2', expires: at(70) };
  const later = NOW + 4.5 * 60_000;
  assert.deepEqual(await freshLogin(SERVER, async () => renewed, later), renewed);
  assert.deepEqual(await findLogin(SERVER), renewed);
  assert.deepEqual(await freshLogin(SERVER, never, later), renewed);
});

test('many at once use a refresh token once', async (t) => {
  home(t);
  await saveLogin(SERVER, { token: 'old', audiences: [], refreshToken: 'r1', expires: at(-1) });
  const used: unknown[] = [];
  const renew = async ({ refreshToken }: Login): Promise<Login> => {
    used.push(refreshToken);
    return { token: 'new', audiences: [], refreshToken: 'r2', expires: at(60) };
  };
  const logins = await Promise.all(Array.from({ length: 6 }, () => freshLogin(SERVER, renew, NOW)));
  assert.deepEqual(used, ['r1']);
  assert.ok(logins.every((login) => login?.token === 'new'));
});

test('a renewal that fails leaves the login as it was', async (t) => {
  home(t);
  const login = { token: 'old', audiences: [], refreshToken: 'r1', expires: at(-1) };
  await saveLogin(SERVER, login);
  await assert.rejects(
    freshLogin(SERVER, () => Promise.reject(new Error('no network')), NOW),
    /no network/,
  );
  assert.deepEqual(await findLogin(SERVER), login);
});

test('a login whose end is not known is used as it is', async (t) => {
  home(t);
  await saveLogin(SERVER, { token: 'endless', audiences: [] });
  assert.equal((await freshLogin(SERVER, never, NOW))?.token, 'endless');
});
