import type { RE2JS } from 're2js';
import { lazyPackage } from './lazy-package.ts';
import { createLru } from './lru.ts';

const re2 = lazyPackage<typeof import('re2js')>('re2js');

/** What people write is far shorter. Together these bound the time of one match to some milliseconds. */
const MAX_PATTERN = 512;
const MAX_PROGRAM = 500;
const MAX_TEXT = 1024;

const compiled = createLru<string, RE2JS>(500);

/** What keeps a text from being used as a pattern, or nothing. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern === '') return 'must not be empty';
  if (pattern.length > MAX_PATTERN) return `must have at most ${MAX_PATTERN} characters`;
  let program: RE2JS;
  try {
    program = re2().RE2JS.compile(pattern);
  } catch (error) {
    return `is not an RE2 pattern: ${(error as Error).message.replace(/^error parsing regexp: /, '')}`;
  }
  return program.programSize() > MAX_PROGRAM ? 'is too complex: use fewer or smaller repetitions' : undefined;
}

/** Whether a pattern matches the whole of a text. A pattern with a problem matches nothing. */
export function matchesPattern(pattern: string, text: string): boolean {
  if (text.length > MAX_TEXT) return false;
  const known = compiled.get(pattern);
  if (!known && patternProblem(pattern) !== undefined) return false;
  const program = known ?? re2().RE2JS.compile(pattern);
  if (!known) compiled.set(pattern, program);
  // Not program.matches(): that is twice as fast, and lets a hostile pattern keep 8 MB of automaton for good.
  return program.matcher(text).matches();
}
