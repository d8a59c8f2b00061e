import { lazyPackage } from '../../base/lazy-package.ts';
import { ordered } from './order.ts';

const pep440 = lazyPackage<typeof import('@renovatebot/pep440')>('@renovatebot/pep440');

/** Versions of Python packages (PEP 440). */
export const comparePypi = ordered(
  (text) => pep440().valid(text) ?? undefined,
  (a, b) => pep440().compare(a, b),
);

/** The form that all ways to write the same version share; nothing for what is no version. */
export const normalPypi = (version: string): string | undefined => pep440().clean(version) ?? undefined;
