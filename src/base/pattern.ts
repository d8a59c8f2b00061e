import type { RE2JS } from 're2js';
import { lazyPackage } from './lazy-package.ts';
import { createLru } from './lru.ts';

const re2 = lazyPackage<typeof import('re2js')>('re2js');

/** Far above what real patterns need. Together these limits bound the time of one match to some milliseconds. */
const MAX_PATTERN = 512;
const MAX_PROGRAM = 500;
const MAX_TEXT = 1024;

const compiled = createLru<string, RE2JS>(500);

/** Says what is wrong with a pattern; undefined when it is valid. */
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

/** Whether a pattern matches the whole text. An invalid pattern matches no text. */
export function matchesPattern(pattern: string, text: string): boolean {
  if (text.length > MAX_TEXT) return false;
  const cached = compiled.get(pattern);
  if (!cached && patternProblem(pattern) !== undefined) return false;
  const program = cached ?? re2().RE2JS.compile(pattern);
  if (!cached) compiled.set(pattern, program);
  // program.matches() is twice as fast, but caches an automaton: a hostile pattern can make it keep 8 MB.
  return program.matcher(text).matches();
}
