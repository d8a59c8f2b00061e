import type { FieldViolation } from '../../../base/errors.ts';

/** The problems of a list: too many items, or items that are not valid, each with its index. */
export function itemProblems<T>(
  field: string,
  items: readonly T[],
  max: number,
  isValid: (item: T) => boolean,
  description: string,
): FieldViolation[] {
  if (items.length > max) return [{ field, description: `must have at most ${max} items` }];
  return items.flatMap((item, at) => (isValid(item) ? [] : [{ field: `${field}[${at}]`, description }]));
}
