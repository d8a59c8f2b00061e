import { lazyPackage } from '../../base/lazy-package.ts';
import { createComparator } from './comparator.ts';

const pep440 = lazyPackage<typeof import('@renovatebot/pep440')>('@renovatebot/pep440');

/** Compares versions of Python packages (PEP 440). */
export const comparePypi = createComparator(
  (text) => pep440().valid(text) ?? undefined,
  (a, b) => pep440().compare(a, b),
);

/** Returns the same text for all spellings of a version. Returns undefined if the text is not a version. */
export const normalizePypiVersion = (version: string): string | undefined => pep440().clean(version) ?? undefined;
