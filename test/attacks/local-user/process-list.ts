import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { start, temporaryDirectory } from '../../../src/cli/cli.testing.ts';
import { pollUntil } from '../../support/poll-until.ts';

test('a secret that is given as a flag is reported, without its value', async (t) => {
  const key = randomBytes(32).toString('hex');
  const data = join(temporaryDirectory(t), 'data');
  const { child, done } = start(['serve', '--master-key', key], { WHARF_LISTEN: '127.0.0.1:0', WHARF_DATA: data });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr?.on('data', (text) => {
    log += text;
  });
  await pollUntil(
    async () => log,
    (text) => text.includes('"serving"'),
  );
  child.kill('SIGTERM');
  await done;
  assert.match(log, /every user can read --master-key in the process list: use the variable/);
  assert.ok(!log.includes(key));
});
