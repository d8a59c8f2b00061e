import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// SIGUSR1 would open the debugger of Node. The start flags prevent it too, see v8-flags.ts.
process.on('SIGUSR1', () => {});

// The compile cache keeps stripped and compiled code between starts. A start then takes two thirds of the time and 20 MB
// less. This file is plain JavaScript because a TypeScript file would load Node's type stripper only for itself.
// The cache is not in the shared temporary directory: any user who can write there could plant code.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/wharf'));
(await import('./resolution-cache.ts')).cacheResolution();
const { run } = await import('./program.ts');

// A reader that closes the pipe early, as in `wharf --help | head -1`, is not an error.
process.stdout.on('error', () => {});

process.exitCode = await run(process.argv.slice(2));
