import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Prints its pid, restarts if it compiled anything, and prints its arguments and variables. */
const program = `
  import { enableCompileCache } from 'node:module';
  enableCompileCache(process.argv[2]);
  console.log('hello from', process.pid);
  const { restartFromCompileCache } = await import(${JSON.stringify(new URL('restart-from-compile-cache.ts', import.meta.url).href)});
  restartFromCompileCache();
  const traces = Object.keys(process.env).filter((name) => /RESTARTED/.test(name));
  console.log('serves', process.argv.slice(3).join(), process.env.GIVEN, traces.length);`;

test('a process that had to compile restarts once, with the same pid and arguments', async (t) => {
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
  assert.equal((await lines()).length, 2, 'the cache is used');
});

test('without a writable compile cache the process does not restart', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'wharf-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'program.mjs');
  await writeFile(file, program);
  // The cache directory is a file.
  const { stdout } = await run(process.execPath, [file, file]);
  assert.match(stdout, /^hello from \d+\nserves .*\n$/);
});
