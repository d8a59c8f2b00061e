#!/usr/bin/env node
import { run } from './program.ts';

// A reader that leaves early, as in `wharf --help | head -1`, is no failure of ours.
process.stdout.on('error', () => {});

process.exitCode = await run(process.argv.slice(2));
