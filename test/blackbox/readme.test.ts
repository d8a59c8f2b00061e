import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(`${root}README.md`, 'utf8');

/** Returns the shell blocks under a heading. */
function blocks(heading: string): string[] {
  const part = readme.split(/^## /m).find((text) => text.startsWith(heading)) ?? assert.fail(heading);
  return [...part.matchAll(/```sh\n(.*?)```/gs)].map(([, code = '']) => code);
}

/** Runs a shell block of the README against the server of a test, in its data directory. */
function runScript(script: string, server: TestServer): Promise<string> {
  const { dataDir } = server.dataLocation;
  const wharf = `wharf() { "${process.execPath}" "${root}dist/wharf.js" "$@"; }`;
  const adapted = script
    .replaceAll('http://127.0.0.1:8080', server.url)
    .replaceAll(/^alias .*$/gm, '')
    .replaceAll('npm run -s wharf --', 'wharf');
  const env = {
    PATH: process.env.PATH,
    HOME: dataDir,
    WHARF_SERVER: server.url,
    WHARF_DATA: dataDir,
  };
  return new Promise((resolve, reject) => {
    execFile('bash', ['-euc', `${wharf}\n${adapted}`], { cwd: dataDir, env }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stdout}\n${stderr}`)) : resolve(stdout),
    );
  });
}

test('the tour of the README works as written', { timeout: 240_000 }, async (t) => {
  const server = await startTestServer(databases[0] ?? assert.fail());
  t.after(() => server.remove());
  const [tour = ''] = blocks('A tour');
  const output = await runScript(tour.replaceAll('curl ', 'curl -s '), server);
  assert.match(output, /"response":"pong"/);
  assert.match(output, /"description":"Everybody's platform"/);
  assert.match(output, /this is the last organization with an operator/);
});

test('the example for access of a CI system works as written', { timeout: 240_000 }, async (t) => {
  const server = await startTestServer(databases[0] ?? assert.fail());
  t.after(() => server.remove());
  const [, quickStart = ''] = blocks('Access for a CI system');
  const output = await runScript(quickStart.replaceAll('curl ', 'curl -s '), server);
  assert.match(output, /"name":"my-org"/);
  assert.match(output, /"code":7,"message":"Permission denied: needs groups.create/);
  assert.match(output, /groups\.create/);
  assert.match(output, /"code":16/);
});
