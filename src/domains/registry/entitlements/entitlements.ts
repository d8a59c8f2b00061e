import type { FieldViolation } from '../../../base/errors.ts';
import { CatalogTier } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import {
  type Entitlement,
  EntitlementSchema,
  EntitlementType,
} from '../../../contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import * as rules from '../../../resource/rules.ts';

const MAX_QUOTAS = 100;
/** Not only the tiers that this server knows: others are stored, and no image counts for them. */
const QUOTA_NAME = /^[A-Za-z][\w .-]{0,63}$/;

/** Entitles a group, and all groups below it, to images of other organizations (effective-entitlements.ts). */
export const entitlements = defineResource({
  kind: 'entitlement',
  plural: 'entitlements',
  schema: EntitlementSchema,
  parents: ['group'],
  rules: { external_id: rules.line(512) },
  check: problemsOf,
});

function problemsOf({ type, tiers, quota }: Entitlement): FieldViolation[] {
  const quotas = Object.entries(quota);
  return [
    ...(isValueOf(EntitlementType, type) ? [] : [{ field: 'type', description: 'must be a known type' }]),
    ...tiers.flatMap((tier, at) =>
      tier !== CatalogTier.UNSPECIFIED && isValueOf(CatalogTier, tier)
        ? []
        : [{ field: `tiers[${at}]`, description: 'must be a known tier' }],
    ),
    ...(quotas.length > MAX_QUOTAS
      ? [{ field: 'quota', description: `must have at most ${MAX_QUOTAS} entries` }]
      : quotas.flatMap(([name, { max }]) => quotaProblems(name, max))),
  ];
}

function quotaProblems(name: string, max: number): FieldViolation[] {
  if (!QUOTA_NAME.test(name)) {
    return [{ field: 'quota', description: 'must have the names of catalog tiers as keys, such as APPLICATION' }];
  }
  return max < 0 ? [{ field: `quota[${name}].max`, description: 'must not be negative' }] : [];
}

const isValueOf = (values: object, value: number): boolean => Object.values(values).includes(value);
