import type { FieldViolation } from '../../base/errors.ts';
import { invalidFields } from '../../base/errors.ts';

/** Bounds the work and the response for a body with many violations. */
const MAX_VIOLATIONS = 10;
const MAX_NAME_LENGTH = 100;

/** Collects the field violations of one request, so that one response reports several. */
export interface Violations {
  report(field: string, description: string): void;
  /** Reports a name that the message has no field for, unless such names are ignored. */
  reportUnknown(field: string, description: () => string): void;
  /** Throws INVALID_ARGUMENT when violations were reported. */
  check(): void;
}

/** What happens to names of a request that its message has no field for. */
export type UnknownNames = 'refused' | 'ignored';

export function collectViolations(unknownNames: UnknownNames = 'refused'): Violations {
  const violations: FieldViolation[] = [];
  const check = () => {
    if (violations.length > 0) throw invalidFields(violations);
  };
  const report = (field: string, description: string) => {
    violations.push({ field, description });
    if (violations.length === MAX_VIOLATIONS) check();
  };
  return {
    report,
    reportUnknown(field, description) {
      if (unknownNames === 'refused') report(field, description());
    },
    check,
  };
}

/** A name that a client sent, shortened and without control characters, for use in an error message. */
export function quotable(name: string): string {
  if (name === '') return '""';
  const short = name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}...` : name;
  return short.toWellFormed().replace(/\p{Cc}/gu, '?');
}
