import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runHere, scratch } from './cli.testing.ts';

test('values are kept, shown and forgotten', async (t) => {
  const env = { XDG_CONFIG_HOME: scratch(t) };
  const config = (...args: string[]) => runHere(['config', ...args], env);
  assert.deepEqual(await config('list'), { code: 0, stdout: '', stderr: '' });
  assert.equal((await config('set', 'server', 'https://wharf.example.com/')).code, 0);
  assert.equal((await config('set', 'output', 'json')).code, 0);
  assert.equal((await config('get', 'server')).stdout, 'https://wharf.example.com\n');
  assert.equal((await config('list')).stdout, 'server=https://wharf.example.com\noutput=json\n');
  assert.equal((await config('unset', 'server')).code, 0);
  const gone = await config('get', 'server');
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  assert.match(gone.stderr, /server is not set in .*config\.json/);
});

test('a file that makes no sense is named, with what is wrong in it', async (t) => {
  const home = scratch(t);
  mkdirSync(join(home, 'wharf'));
  const cases: [text: string, words: RegExp][] = [
    ['{"server":"nowhere"}', /config\.json: server="nowhere" cannot be used: write scheme and host/],
    ['{"colour":"red"}', /config\.json: colour is not one of server, output/],
    ['{', /config\.json is not a JSON object/],
  ];
  for (const [text, words] of cases) {
    writeFileSync(join(home, 'wharf/config.json'), text);
    const { code, stderr } = await runHere(['ping'], { XDG_CONFIG_HOME: home });
    assert.equal(code, 1);
    assert.match(stderr, words);
  }
});
