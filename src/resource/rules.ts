import type { DescEnum } from '@bufbuild/protobuf';
import type { Rule } from './definition.ts';

const NAME = /^[a-z0-9 ._-]{1,}$/;
const DESCRIPTION = /^[\S ]{0,512}$/;
const LINE = /^\P{Cc}*$/u;

/**
 * The general limit for texts of one line, where no rule of a field sets a lower one. Such a text can be a sort key: an
 * index row of PostgreSQL has room for it and a uid.
 */
export const MAX_LINE = 2048;

export interface Lengths {
  readonly min?: number;
  readonly max?: number;
}

/** A name of lower-case letters, digits, spaces, dots, underscores and dashes. */
export const name =
  ({ min = 1, max = 255 }: Lengths = {}): Rule<string> =>
  (value) => {
    if (value.length < min || value.length > max) return `must have ${min} to ${max} characters`;
    return NAME.test(value) ? undefined : `must match ${NAME.source}`;
  };

export const description: Rule<string> = (value) =>
  value.length <= 512 && DESCRIPTION.test(value) ? undefined : 'must be one line of at most 512 characters';

/** Any text without line breaks and other control characters. */
export const line =
  (max: number): Rule<string> =>
  (value) =>
    value.length <= max && LINE.test(value) ? undefined : `must be one line of at most ${max} characters`;

/** Any text. The limit only keeps pages of a list from becoming huge. */
export const text =
  (max = 4096): Rule<string> =>
  (value) =>
    value.length <= max ? undefined : `must have at most ${max} characters`;

export const range =
  (min: number, max: number): Rule<number> =>
  (value) =>
    value >= min && value <= max ? undefined : `must be ${min} to ${max}`;

/** A value that the contract names. A binary message can contain other numbers. */
export const enumValue =
  ({ values }: DescEnum): Rule<number> =>
  (value) =>
    values.some(({ number }) => number === value)
      ? undefined
      : `must be one of ${values.map(({ name }) => name).join(', ')}`;

/** A list with at most `max` items, each of which `item` accepts. */
export const list =
  <T>(max: number, item: Rule<T>): Rule<readonly T[]> =>
  (values) => {
    if (values.length > max) return `must have at most ${max} items`;
    const problem = values.map(item).find((each) => each !== undefined);
    return problem && `each item ${problem}`;
  };
