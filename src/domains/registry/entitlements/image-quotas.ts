import { CatalogTier } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Entitlement } from '../../../contract/gen/wharfinger/registry/v1/entitlements_pb.js';

/** The current number of images of a tier, and the limit. */
interface Quota {
  readonly current: number;
  readonly max: number;
}

/** The name of a tier in v1, by which quotas are keyed. */
const tierName = (tier: CatalogTier): string =>
  tier === CatalogTier.UNSPECIFIED ? 'UNKNOWN' : (CatalogTier[tier] ?? String(tier));

/** Clients write the names of tiers in upper or lower case. */
const isQuotaOf = (name: string, tier: CatalogTier): boolean => name.toUpperCase() === tierName(tier);

/** Sets the current number of images in each quota. */
export function countImages({ quota, images }: Entitlement): void {
  for (const [name, each] of Object.entries(quota)) {
    each.current = images.filter(({ catalogTier }) => isQuotaOf(name, catalogTier)).length;
  }
}

/** Why the images, which must have been counted, are too many. An entitlement without quotas has no limit. */
export function quotaProblem({ quota, images }: Entitlement): string | undefined {
  const quotas = Object.entries(quota);
  if (quotas.length === 0) return undefined;
  const without = images.find(({ catalogTier }) => !quotas.some(([name]) => isQuotaOf(name, catalogTier)));
  if (without) return `has no quota for images of the tier ${tierName(without.catalogTier)}, such as ${without.name}`;
  const exceeded = quotas.find(([, { current, max }]) => current > max);
  return exceeded && `can have at most ${exceeded[1].max} images of the tier ${exceeded[0]}`;
}

const MAX_INT32 = 2 ** 31 - 1;
const addInt32 = (a: number, b: number): number => Math.min(a + b, MAX_INT32);

/** The sums of the quotas of several entitlements, by name. */
export function sumOfQuotas(all: readonly Entitlement[]): Record<string, Quota> {
  const sums = new Map<string, Quota>();
  for (const [name, { current, max }] of all.flatMap(({ quota }) => Object.entries(quota))) {
    const sum = sums.get(name) ?? { current: 0, max: 0 };
    sums.set(name, { current: addInt32(sum.current, current), max: addInt32(sum.max, max) });
  }
  return Object.fromEntries(sums);
}

/** The sum of the limits of all quotas. */
export const sumOfLimits = (quotas: Readonly<Record<string, Quota>>): number =>
  Object.values(quotas).reduce((sum, { max }) => addInt32(sum, max), 0);
