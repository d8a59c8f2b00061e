import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Says hello, begins anew if it has compiled anything, and says what it was given. */
const program = `
  import { enableCompileCache } from 'node:module';
  enableCompileCache(process.argv[2]);
  console.log('hello from', process.pid);
  const { beginAnewIfCompiled } = await import(${JSON.stringify(new URL('restart-from-compile-cache.ts', import.meta.url).href)});
  beginAnewIfCompiled();
  const traces = Object.keys(process.env).filter((name) => /ANEW/.test(name));
  console.log('serves', process.argv.slice(3).join(), process.env.GIVEN, traces.length);`;

test('a process that had to compile begins anew, once, as the same process with the same arguments', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'wharf-'));
  t.after(() => rm(directory, { recursive: true }));
  const [file, cache] = [join(directory, 'program.mjs'), join(directory, 'cache')];
  await writeFile(file, program);
  const lines = async (): Promise<string[]> => {
    const { stdout } = await run(process.execPath, [file, cache, 'a', 'b c'], { env: { ...process.env, GIVEN: 'x' } });
    return stdout.trim().split('\n');
  };
  const [hello, again, ...rest] = await lines();
  assert.match(hello ?? '', /^hello from \d+$/);
  assert.equal(again, hello);
  assert.deepEqual(rest, ['serves a,b c x 0']);
  assert.notEqual((await readdir(cache)).length, 0);
  assert.equal((await lines()).length, 2, 'what was compiled is there');
});

test('without a place to keep what was compiled, it goes on as it is', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'wharf-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'program.mjs');
  await writeFile(file, program);
  // A file where the directory should be.
  const { stdout } = await run(process.execPath, [file, file]);
  assert.match(stdout, /^hello from \d+\nserves .*\n$/);
});
