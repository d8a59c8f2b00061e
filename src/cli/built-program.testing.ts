import { fileURLToPath } from 'node:url';
import { buildIfStale } from '../../tools/build.ts';

await buildIfStale();

/** The bundled program, which tests start as users do. */
export const PROGRAM = fileURLToPath(new URL('../../dist/wharf.js', import.meta.url));
