import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess, temporaryDirectory } from './cli.testing.ts';

test('values are saved, printed and removed', async (t) => {
  const env = { XDG_CONFIG_HOME: temporaryDirectory(t) };
  const config = (...args: string[]) => runInProcess(['config', ...args], env);
  assert.deepEqual(await config('list'), { code: 0, stdout: '', stderr: '' });
  assert.equal((await config('set', 'server', 'https://wharf.example.com/')).code, 0);
  assert.equal((await config('set', 'output', 'json')).code, 0);
  assert.equal((await config('get', 'server')).stdout, 'https://wharf.example.com\n');
  assert.equal((await config('list')).stdout, 'server=https://wharf.example.com\noutput=json\n');
  assert.equal((await config('unset', 'server')).code, 0);
  const removed = await config('get', 'server');
  assert.deepEqual([removed.code, removed.stdout], [1, '']);
  assert.match(removed.stderr, /server is not set in .*config\.json/);
});

test('an error names the invalid file and value', async (t) => {
  const configDirectory = temporaryDirectory(t);
  mkdirSync(join(configDirectory, 'wharf'));
  const cases: [text: string, words: RegExp][] = [
    ['{"server":"nowhere"}', /config\.json: server="nowhere" cannot be used: write scheme and host/],
    ['{"colour":"red"}', /config\.json: colour is not one of server, output/],
    ['{', /config\.json is not a JSON object/],
  ];
  for (const [text, words] of cases) {
    writeFileSync(join(configDirectory, 'wharf/config.json'), text);
    const { code, stderr } = await runInProcess(['ping'], { XDG_CONFIG_HOME: configDirectory });
    assert.equal(code, 1);
    assert.match(stderr, words);
  }
});
