import type { FieldViolation } from '../../../base/errors.ts';
import { itemProblems } from './item-problems.ts';

const BUNDLES: readonly string[] = [
  'application',
  'base',
  'byol',
  'ai',
  'ai-gpu',
  'featured',
  'fips',
  'commercial',
  'emeritoss',
];

/** The problems of the bundles of a repo or a tag. */
export const bundleProblems = (bundles: readonly string[]): FieldViolation[] =>
  itemProblems(
    'bundles',
    bundles,
    BUNDLES.length,
    (bundle) => BUNDLES.includes(bundle),
    `must be one of ${BUNDLES.join(', ')}`,
  );
