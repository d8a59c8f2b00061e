import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { addClientOptions, type Context, contextOf } from './context.ts';

function parse(...args: string[]): Context {
  const command = addClientOptions(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return contextOf(command);
}

test('client commands talk to the local server and print tables unless told otherwise', () => {
  for (const name of ['WHARF_SERVER', 'WHARF_TOKEN']) delete process.env[name];
  const { server, output } = parse();
  assert.deepEqual({ server, output }, { server: 'http://127.0.0.1:8080', output: 'table' });
  const given = parse('--server', 'https://wharf.example.com/', '-o', 'json');
  assert.deepEqual([given.server, given.output], ['https://wharf.example.com', 'json']);
});

test('server and token come from variables, flags first', async (t) => {
  t.after(() => {
    for (const name of ['WHARF_SERVER', 'WHARF_TOKEN']) delete process.env[name];
  });
  Object.assign(process.env, { WHARF_SERVER: 'http://other:9000', WHARF_TOKEN: 'from-env\n' });
  assert.equal(parse().server, 'http://other:9000');
  assert.equal(await parse().token(), 'from-env');
  assert.equal(await parse('--token', 'from-flag').token(), 'from-flag');
  process.env.WHARF_SERVER = '';
  assert.equal(parse().server, 'http://127.0.0.1:8080');
});

test('the data directory is an absolute path', () => {
  const command = addClientOptions(new Command());
  assert.equal(command.parse([], { from: 'user' }).opts().data, resolve('data'));
  assert.equal(command.parse(['--data', 'src'], { from: 'user' }).opts().data, resolve('src'));
});
