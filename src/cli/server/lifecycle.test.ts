import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { start, temporaryDirectory, wharf } from '../cli.testing.ts';

/** Resolves with the address in the banner when it is printed. */
function addressFrom({ stdout }: ChildProcess): Promise<string> {
  let text = '';
  return new Promise((resolve) => {
    stdout?.on('data', (part) => {
      text += part;
      const [, url] = /serves (\S+)\n[\s\S]*\/iam\/v2\/groups\/[0-9a-f]{40}\n/.exec(text) ?? [];
      if (url) resolve(url);
    });
  });
}

test('a server starts, responds, logs JSON lines, and stops at SIGTERM', { timeout: 60_000 }, async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  // Kubernetes sets variables such as this one in the pods beside a Service with the name `wharf`.
  const kubernetes = { WHARF_PORT: 'tcp://10.0.0.11:8080', WHARF_SERVICE_HOST: '10.0.0.11' };
  const { child, done } = start(['serve'], { WHARF_LISTEN: '127.0.0.1:0', WHARF_DATA: data, ...kubernetes });
  t.after(() => child.kill('SIGKILL'));
  const url = await Promise.race([addressFrom(child), done.then(({ stderr }) => assert.fail(stderr))]);

  assert.equal((await wharf(['ping', '--server', url])).code, 0);
  assert.equal((await wharf(['auth', 'token', '--data', data])).code, 0);

  const second = { WHARF_LISTEN: new URL(url).host, WHARF_DATA: temporaryDirectory(t), WHARF_LOG_LEVEL: 'silent' };
  const { code, stdout, stderr } = await wharf(['serve'], second);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
  assert.match(stderr, /^wharf: port \d+ is used by another program: set WHARF_LISTEN to another port[^\n]*\n$/);

  child.kill('SIGTERM');
  const result = await done;
  assert.equal(result.code, 0);
  assert.match(result.stdout, /auth token --data /);
  const lines = result.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    lines.filter(({ level }) => level !== 'info'),
    [],
  );
});

test('a misspelt variable stops the start', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const { code, stdout, stderr } = await wharf(['serve'], { WHARF_DATA: data, WHARF_LISTN: ':8080' });
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
  assert.match(stderr, /^wharf: WHARF_LISTN is not a setting: did you mean WHARF_LISTEN\?[^\n]*\n$/);
  assert.equal(existsSync(data), false);
});

test('a target of scheduled backups in the data directory stops the start', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const { code, stderr } = await wharf(['serve'], { WHARF_DATA: data, WHARF_BACKUP_TO: join(data, 'backups') });
  assert.equal(code, 1);
  assert.match(stderr, /^wharf: [^\n]*is in the data directory, and would be lost with it[^\n]*\n$/);
});
