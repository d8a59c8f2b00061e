import { invalid } from '../../base/errors.ts';
import {
  CatalogTier,
  type CustomOverlay_Accounts,
  RepoSchema,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { ApkoConfig_Accounts } from '../../contract/gen/platform/registry/v1/apko.platform_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { createMessageMapper } from '../message-mapper.ts';

/** Both versions have the same tiers, with different numbers. */
const tiers: readonly (readonly [v1.CatalogTier, CatalogTier])[] = [
  [v1.CatalogTier.UNKNOWN, CatalogTier.UNSPECIFIED],
  [v1.CatalogTier.APPLICATION, CatalogTier.APPLICATION],
  [v1.CatalogTier.BASE, CatalogTier.BASE],
  [v1.CatalogTier.FIPS, CatalogTier.FIPS],
  [v1.CatalogTier.AI, CatalogTier.AI],
  [v1.CatalogTier.DEVTOOLS, CatalogTier.DEVTOOLS],
  [v1.CatalogTier.COMMERCIAL, CatalogTier.COMMERCIAL],
];

/** A number that v2 does not define, so that v2 refuses it. */
const UNDEFINED_TIER = -1 as CatalogTier;

export const tierConverter = {
  toV2: (tier: v1.CatalogTier): CatalogTier => tiers.find(([v1Tier]) => v1Tier === tier)?.[1] ?? UNDEFINED_TIER,
  toV1: (tier: CatalogTier): v1.CatalogTier =>
    tiers.find(([, v2Tier]) => v2Tier === tier)?.[0] ?? v1.CatalogTier.UNKNOWN,
};

/** v1 uses the accounts of ApkoConfig. There, fields have other names in each message, and a group id is optional. */
const accountsConverter = {
  toV2: ({ runAs, users, groups }: ApkoConfig_Accounts) => ({
    runAs,
    users: users.map(({ uid, userName, gid, groupName, shell, homeDir }) => ({
      ...{ uid: toInt32(uid), username: userName, gid: toInt32(gid ?? 0) },
      ...{ groupName, shell, homeDir },
    })),
    groups: groups.map(({ gid, groupName, members }) => ({ gid: toInt32(gid), groupname: groupName, members })),
  }),
  toV1: ({ runAs, users, groups }: CustomOverlay_Accounts) => ({
    runAs,
    users: users.map(({ uid, username, gid, groupName, shell, homeDir }) => ({
      ...{ uid, userName: username, ...(gid !== 0 && { gid }) },
      ...{ groupName, shell, homeDir },
    })),
    groups: groups.map(({ gid, groupname, members }) => ({ gid, groupName: groupname, members })),
  }),
};

/** The README is a field of the repo in v1. In v2 it has methods of its own. */
export const repoMapper = createMessageMapper(v1.RepoSchema, RepoSchema, {
  renames: { id: 'uid', expiration: 'expiration_time' },
  onlyV1: ['readme'],
  onlyV2: ['update_time'],
  converters: { catalog_tier: tierConverter, accounts: accountsConverter },
});

/** User and group ids are unsigned in v1 and signed in v2. */
function toInt32(id: number): number {
  if (id > MAX_INT32) throw invalid('custom_overlay.accounts', `must have user and group ids of at most ${MAX_INT32}`);
  return id;
}

const MAX_INT32 = 2 ** 31 - 1;
