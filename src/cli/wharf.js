#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Types are stripped and code is compiled once and not at every start, which then takes two thirds of the time and 20 MB
// less. That is why this one file is plain JavaScript: a TypeScript file would load the stripper just for itself.
// Beside the code and not in the shared temporary directory: whoever can write there could plant code.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/wharf'));
(await import('./resolution-cache.ts')).resolveOnce();
const { run } = await import('./program.ts');

// A reader that leaves early, as in `wharf --help | head -1`, is no failure of ours.
process.stdout.on('error', () => {});

process.exitCode = await run(process.argv.slice(2));
