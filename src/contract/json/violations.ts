import type { FieldViolation } from '../../base/errors.ts';
import { invalidFields } from '../../base/errors.ts';

/** Enough to act on; it also bounds the work and the answer for a body that is wrong all over. */
const LIMIT = 10;
const LONGEST_NAME = 100;

/** What is wrong with one request, so that a client learns about several mistakes at once. */
export interface Violations {
  report(field: string, description: string): void;
  /** Throws INVALID_ARGUMENT when anything was reported. */
  check(): void;
}

export function collectViolations(): Violations {
  const violations: FieldViolation[] = [];
  const check = () => {
    if (violations.length > 0) throw invalidFields(violations);
  };
  return {
    report(field, description) {
      violations.push({ field, description });
      if (violations.length === LIMIT) check();
    },
    check,
  };
}

/** A name that a client made up, short and clean enough to be given back. */
export function quotable(name: string): string {
  if (name === '') return '""';
  const short = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}...` : name;
  return short.toWellFormed().replace(/\p{Cc}/gu, '?');
}
