import type { DatasetSize } from '../data.ts';

/** The organization that the limits apply to. */
export const LARGE: DatasetSize = { repos: 1_000_000, groups: 1_000 };

/** A third size for the plot. */
export const MEDIUM: DatasetSize = { repos: 30_000, groups: 40 };

/** Requests on the large organization must not be much slower than on this one. */
export const SMALL: DatasetSize = { repos: 1_000, groups: 40 };
