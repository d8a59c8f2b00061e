import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { PROGRAM } from '../../src/cli/built-program.testing.ts';

const COUNT_FILES = `
import { registerHooks } from 'node:module';
let files = 0;
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) files++;
    return next(url, context);
  },
});
process.on('exit', () => process.stdout.write('files: ' + files + '\\n'));`;

// The server is bundled separately from the commands. What `serve` imports itself is loaded twice.
test('the command serve loads little before it loads the server', () => {
  const hook = `data:text/javascript,${encodeURIComponent(COUNT_FILES)}`;
  const output = execFileSync(process.execPath, ['--import', hook, PROGRAM, 'serve', '--help'], { encoding: 'utf8' });
  const files = Number(/files: (\d+)/.exec(output)?.[1]);
  assert.ok(files < 30, `it loads ${files} files: import the constant or type that it needs from a small file`);
});
