import { clean, compare, valid } from '@renovatebot/pep440';
import { createComparator } from './comparator.ts';

/** Compares versions of Python packages (PEP 440). */
export const comparePypi = createComparator(
  (text) => valid(text) ?? undefined,
  (a, b) => compare(a, b),
);

/** Returns the same text for all spellings of a version. Returns undefined if the text is not a version. */
export const normalizePypiVersion = (version: string): string | undefined => clean(version) ?? undefined;
