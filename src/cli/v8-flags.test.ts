import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { version } from '../base/version.ts';
import { temporaryDirectory } from './cli.testing.ts';
import { startFlags } from './v8-flags.ts';

const launcher = fileURLToPath(new URL('../../dist/wharf.sh', import.meta.url));
const flags = startFlags.join(' ');

test('package.json and the launcher start wharf with the start flags', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  assert.equal(scripts.start, `node ${flags} dist/wharf.js serve`);
  assert.equal(scripts.wharf, `node ${flags} dist/wharf.js`);
  assert.ok(readFileSync(launcher, 'utf8').includes(`exec "$node" ${flags} "$here/wharf.js" "$@"`));
});

test('the launcher works by a link in the PATH', async (t) => {
  const link = join(temporaryDirectory(t), 'wharf');
  symlinkSync(launcher, link);
  const { stdout } = await promisify(execFile)(link, ['--version'], { env: { PATH: '/usr/bin:/bin' } });
  assert.equal(stdout, `${version}\n`);
});
