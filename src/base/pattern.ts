import { RE2JS } from 're2js';
import { createLru } from './lru.ts';

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
    program = RE2JS.compile(pattern);
  } catch (error) {
    return `is not an RE2 pattern: ${(error as Error).message.replace(/^error parsing regexp: /, '')}`;
  }
  return program.programSize() > MAX_PROGRAM ? 'is too complex: use fewer or smaller repetitions' : undefined;
}

/** Limits the work of all matches that one token causes. Its unit is one step of a program at one character. */
export interface PatternBudget {
  /** Takes `units` from what is left. Returns false, and takes nothing, when that is not enough. */
  spend(units: number): boolean;
}

/** A budget of `units`. When they are spent, it takes from `pool`, which several budgets share. */
export function createPatternBudget(units: number, pool?: PatternBudget): PatternBudget {
  let left = units;
  return {
    spend(wanted) {
      if (wanted > left) return pool?.spend(wanted) ?? false;
      left -= wanted;
      return true;
    },
  };
}

/** Compiling takes as long as matching a text of this length. */
const COMPILE_CHARACTERS = 100;

/**
 * Whether a pattern matches the whole text. An invalid pattern matches no text, and neither does one for which the
 * budget is not enough.
 */
export function matchesPattern(pattern: string, text: string, budget?: PatternBudget): boolean {
  if (text.length > MAX_TEXT) return false;
  const cached = compiled.get(pattern);
  // The length of a pattern is known before it is compiled, and is a lower bound for the work in most cases.
  if (!cached && budget?.spend(pattern.length * COMPILE_CHARACTERS) === false) return false;
  if (!cached && patternProblem(pattern) !== undefined) return false;
  const program = cached ?? RE2JS.compile(pattern);
  if (!cached) compiled.set(pattern, program);
  if (budget?.spend(program.programSize() * (text.length + 1)) === false) return false;
  // program.matches() is twice as fast, but caches an automaton: a hostile pattern can make it keep 8 MB.
  return program.matcher(text).matches();
}
