import assert from 'node:assert/strict';
import { chmodSync, statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../cli.testing.ts';
import { findLogin, getValidLogin, type Login, removeLogin, saveLogin } from './logins.ts';
import { userFile } from './private-file.ts';

const SERVER = 'https://wharf.example.com';
const NOW = Date.parse('2026-01-31T12:00:00Z');
const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();

function useTemporaryConfig(t: TestContext): void {
  const before = process.env.XDG_CONFIG_HOME;
  process.env.XDG_CONFIG_HOME = temporaryDirectory(t);
  t.after(() => {
    if (before === undefined) delete process.env.XDG_CONFIG_HOME;
    else process.env.XDG_CONFIG_HOME = before;
  });
}

test('saved logins that other users can read are made private', async (t) => {
  useTemporaryConfig(t);
  await saveLogin(SERVER, { token: 'a', audiences: [] });
  const path = userFile('credentials.json');
  chmodSync(path, 0o644);
  assert.ok(await findLogin(SERVER));
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

const failRenewal = async (): Promise<Login> => assert.fail('nothing must be renewed');

test('each server has its own login', async (t) => {
  useTemporaryConfig(t);
  assert.equal(await findLogin(SERVER), undefined);
  await Promise.all(['a', 'b', 'c'].map((name) => saveLogin(`https://${name}`, { token: name, audiences: [name] })));
  assert.deepEqual(await findLogin('https://b'), { token: 'b', audiences: ['b'] });
  assert.equal(await removeLogin('https://b'), true);
  assert.equal(await removeLogin('https://b'), false);
  assert.equal(await findLogin('https://b'), undefined);
  assert.ok(await findLogin('https://c'));
});

test('a token is renewed shortly before it expires, and saved', async (t) => {
  useTemporaryConfig(t);
  const login = { token: 'old', audiences: [SERVER], refreshToken: 'r1', expires: at(5) };
  await saveLogin(SERVER, login);
  assert.deepEqual(await getValidLogin(SERVER, failRenewal, NOW), login);
  const renewed = { token: 'new', audiences: [SERVER], refreshToken: 'r2', expires: at(70) };
  const later = NOW + 4.5 * 60_000;
  assert.deepEqual(await getValidLogin(SERVER, async () => renewed, later), renewed);
  assert.deepEqual(await findLogin(SERVER), renewed);
  assert.deepEqual(await getValidLogin(SERVER, failRenewal, later), renewed);
});

test('concurrent renewals use a refresh token once', async (t) => {
  useTemporaryConfig(t);
  await saveLogin(SERVER, { token: 'old', audiences: [], refreshToken: 'r1', expires: at(-1) });
  const used: unknown[] = [];
  const renew = async ({ refreshToken }: Login): Promise<Login> => {
    used.push(refreshToken);
    return { token: 'new', audiences: [], refreshToken: 'r2', expires: at(60) };
  };
  const logins = await Promise.all(Array.from({ length: 6 }, () => getValidLogin(SERVER, renew, NOW)));
  assert.deepEqual(used, ['r1']);
  assert.ok(logins.every((login) => login?.token === 'new'));
});

test('a renewal that fails leaves the login as it was', async (t) => {
  useTemporaryConfig(t);
  const login = { token: 'old', audiences: [], refreshToken: 'r1', expires: at(-1) };
  await saveLogin(SERVER, login);
  await assert.rejects(
    getValidLogin(SERVER, () => Promise.reject(new Error('no network')), NOW),
    /no network/,
  );
  assert.deepEqual(await findLogin(SERVER), login);
});

test('a login without an expiry is used as it is', async (t) => {
  useTemporaryConfig(t);
  await saveLogin(SERVER, { token: 'endless', audiences: [] });
  assert.equal((await getValidLogin(SERVER, failRenewal, NOW))?.token, 'endless');
});
