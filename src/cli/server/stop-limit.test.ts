import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

const BLOCKED = `
  const { startStopLimit } = await import(${JSON.stringify(new URL('./stop-limit.ts', import.meta.url).href)});
  startStopLimit(50, { warn(fields, message) { console.error(message, fields); } });
  for (;;) {}
`;

test('a process whose event loop is blocked is killed at the limit, and the log says so', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', BLOCKED], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const [log, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  const { time: _, ...fields } = JSON.parse(log);
  assert.deepEqual(fields, { level: 'error', limitMs: 50, message: 'could not stop in time: the process is killed' });
});
