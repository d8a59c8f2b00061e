import type { DatasetSize } from '../data.ts';

/** What the bars are about. */
export const BIG: DatasetSize = { repos: 1_000_000, groups: 1_000 };

/** Between both, for the plot. */
export const MIDDLE: DatasetSize = { repos: 30_000, groups: 40 };

/** What the big one must not be much slower than. */
export const SMALL: DatasetSize = { repos: 1_000, groups: 40 };
