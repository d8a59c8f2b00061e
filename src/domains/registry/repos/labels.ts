import type { FieldViolation } from '../../../base/errors.ts';

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

/** What is wrong with the labels of a repo or a tag. */
export const bundleProblems = (bundles: readonly string[]): FieldViolation[] =>
  eachOf(
    'bundles',
    bundles,
    BUNDLES.length,
    (bundle) => BUNDLES.includes(bundle),
    `must be one of ${BUNDLES.join(', ')}`,
  );

/** Judges the items of a list one by one, and how many there are. */
export function eachOf<T>(
  field: string,
  items: readonly T[],
  max: number,
  isRight: (item: T) => boolean,
  description: string,
): FieldViolation[] {
  if (items.length > max) return [{ field, description: `must have at most ${max} items` }];
  return items.flatMap((item, at) => (isRight(item) ? [] : [{ field: `${field}[${at}]`, description }]));
}
