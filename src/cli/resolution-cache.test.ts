import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const files: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'main.js': `
    import { join } from 'node:path';
    import { word } from 'words';
    import one from './one.js';
    import two from './inner/two.js';
    import three from './inner/three.cjs';
    import facts from './facts.json' with { type: 'json' };
    import { createRequire } from 'node:module';
    const required = createRequire(import.meta.url)('words').word;
    const gone = await import('./gone.js').catch((error) => error.code);
    console.log(JSON.stringify({ word, required, one, two, three, facts, gone, join: join('a', 'b') }));`,
  'one.js': `import { word } from 'words'; export default 'one ' + word;`,
  'inner/package.json': '{ "type": "commonjs" }',
  'inner/two.js': `module.exports = 'two ' + typeof require;`,
  'inner/three.cjs': `module.exports = 'three';`,
  'facts.json': '{ "fact": 1 }',
  'node_modules/words/package.json': '{ "exports": { "import": "./esm.mjs", "require": "./cjs.cjs" } }',
  'node_modules/words/esm.mjs': `export { word } from './more.mjs';`,
  'node_modules/words/more.mjs': `export const word = 'imported';`,
  'node_modules/words/cjs.cjs': `exports.word = 'required';`,
};

test('modules resolve as without the cache', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'wharf-'));
  t.after(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  await writeFile(
    join(directory, 'quick.js'),
    `const { cacheResolution } = await import(${JSON.stringify(new URL('resolution-cache.ts', import.meta.url).href)});
     cacheResolution();
     await import('./main.js');`,
  );
  const run = async (program: string): Promise<Record<string, unknown>> =>
    JSON.parse((await promisify(execFile)(process.execPath, [join(directory, program)])).stdout);
  const expected = await run('main.js');
  assert.equal(expected.gone, 'ERR_MODULE_NOT_FOUND');
  assert.deepEqual({ ...(await run('quick.js')), gone: '' }, { ...expected, gone: '' });
});
