import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Command } from 'commander';
import { newOwner, saveOwner } from '../identity/owner/owner-key.ts';
import { temporaryDirectory } from './cli.testing.ts';
import { addClientOptions, readContext } from './client-options.ts';
import type { ClientContext } from './context.ts';
import { type CliError, ExitCode } from './exit-codes.ts';
import { setConfig } from './settings/config-file.ts';
import { saveLogin } from './settings/logins.ts';

const VARIABLES = ['WHARF_SERVER', 'WHARF_TOKEN', 'WHARF_CA', 'WHARF_DATA', 'XDG_CONFIG_HOME'];

/** Sets these environment variables only, and a temporary configuration directory. */
function setEnvironment(t: TestContext, env: Record<string, string> = {}): void {
  for (const name of VARIABLES) delete process.env[name];
  Object.assign(process.env, { XDG_CONFIG_HOME: temporaryDirectory(t), ...env });
}

async function parse(...args: string[]): Promise<ClientContext> {
  const command = addClientOptions(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return readContext(command);
}

test('the defaults are the local server and tables', async (t) => {
  setEnvironment(t);
  const { server, output } = await parse();
  assert.deepEqual({ server, output }, { server: 'http://127.0.0.1:8080', output: 'table' });
  const given = await parse('--server', 'https://wharf.example.com/', '-o', 'json');
  assert.deepEqual([given.server, given.output], ['https://wharf.example.com', 'json']);
});

test('a flag overrides its variable, then the configuration file, then the default', async (t) => {
  setEnvironment(t);
  await setConfig('server', 'http://config:1');
  await setConfig('output', 'json');
  assert.equal((await parse()).server, 'http://config:1');
  assert.equal((await parse()).output, 'json');
  assert.equal((await parse('-o', 'table')).output, 'table');
  process.env.WHARF_SERVER = 'http://variable:1';
  assert.equal((await parse()).server, 'http://variable:1');
  assert.equal((await parse('--server', 'http://flag:1')).server, 'http://flag:1');
  process.env.WHARF_SERVER = '';
  assert.equal((await parse()).server, 'http://config:1', 'an empty variable counts as unset');
});

test('the token is from the flag, the variable, the login or the owner, in this order', async (t) => {
  setEnvironment(t);
  const data = join(temporaryDirectory(t), 'data');
  await saveOwner(data, await newOwner());
  process.env.WHARF_DATA = data;
  const isOwner = (token: string) => assert.equal(token.split('.').length, 3);

  isOwner(await (await parse()).token());
  await saveLogin('http://127.0.0.1:8080', { token: 'cached', audiences: [] });
  assert.equal(await (await parse()).token(), 'cached');
  isOwner(await (await parse('--data', data)).token());
  process.env.WHARF_TOKEN = 'variable\n';
  assert.equal(await (await parse()).token(), 'variable');
  isOwner(await (await parse('--data', data)).token());
  assert.equal(await (await parse('--token', 'flag', '--data', data)).token(), 'flag');
});

test('a login is used for one server, the owner for servers on this machine', async (t) => {
  setEnvironment(t);
  const data = join(temporaryDirectory(t), 'data');
  await saveOwner(data, await newOwner());
  process.env.WHARF_DATA = data;
  await saveLogin('https://one.example.com', { token: 'one', audiences: [] });
  assert.equal(await (await parse('--server', 'https://one.example.com')).token(), 'one');
  for (const server of ['http://localhost:1', 'http://[::1]:1', 'https://127.0.0.2']) {
    assert.ok(await (await parse('--server', server)).token(), server);
  }
  for (const server of ['https://two.example.com', 'http://localhost.example.com', 'http://10.0.0.1:8080']) {
    const { token } = await parse('--server', server);
    await assert.rejects(token(), (error: CliError) => {
      assert.equal(error.exitCode, ExitCode.unauthenticated);
      assert.match(error.message, /wharf auth login/);
      return true;
    });
  }
});

test('the data directory is an absolute path', async (t) => {
  setEnvironment(t, { WHARF_CONFIG: '/dev/null' });
  const dataOf = async (...args: string[]): Promise<string> => {
    const command = addClientOptions(new Command()).parse(args, { from: 'user' });
    return (await readContext(command)).data();
  };
  assert.equal(await dataOf(), resolve('data'));
  assert.equal(await dataOf('--data', 'src'), resolve('src'));
});
