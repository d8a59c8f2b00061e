import {
  CatalogTier,
  type CustomOverlay_Accounts,
  RepoSchema,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { ApkoConfig_Accounts } from '../../contract/gen/platform/registry/v1/apko.platform_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { vocabulary } from '../message-mapper.ts';

/** Both versions have the same tiers under other numbers. */
const tiers: readonly (readonly [v1.CatalogTier, CatalogTier])[] = [
  [v1.CatalogTier.UNKNOWN, CatalogTier.UNSPECIFIED],
  [v1.CatalogTier.APPLICATION, CatalogTier.APPLICATION],
  [v1.CatalogTier.BASE, CatalogTier.BASE],
  [v1.CatalogTier.FIPS, CatalogTier.FIPS],
  [v1.CatalogTier.AI, CatalogTier.AI],
  [v1.CatalogTier.DEVTOOLS, CatalogTier.DEVTOOLS],
  [v1.CatalogTier.COMMERCIAL, CatalogTier.COMMERCIAL],
];

/** A number that v2 does not have either, so that it says so. */
const NO_TIER = -1 as CatalogTier;

const tier = {
  toV2: (asked: v1.CatalogTier): CatalogTier => tiers.find(([ours]) => ours === asked)?.[1] ?? NO_TIER,
  toV1: (stored: CatalogTier): v1.CatalogTier =>
    tiers.find(([, theirs]) => theirs === stored)?.[0] ?? v1.CatalogTier.UNKNOWN,
};

/** v1 borrows the accounts of another message, where names differ by message and a group id may be absent. */
const accounts = {
  toV2: ({ runAs, users, groups }: ApkoConfig_Accounts) => ({
    runAs,
    users: users.map(({ uid, userName, gid, groupName, shell, homeDir }) => ({
      ...{ uid, username: userName, gid: gid ?? 0 },
      ...{ groupName, shell, homeDir },
    })),
    groups: groups.map(({ gid, groupName, members }) => ({ gid, groupname: groupName, members })),
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

/** The README is a part of the repo in v1, and apart from it in v2. */
export const words = vocabulary(v1.RepoSchema, RepoSchema, {
  names: { id: 'uid', expiration: 'expiration_time' },
  onlyV1: ['readme', 'sync_apks'],
  onlyV2: ['update_time'],
  values: { catalog_tier: tier, accounts },
});
