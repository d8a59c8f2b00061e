import { timestampMs } from '@bufbuild/protobuf/wkt';
import { precondition } from '../../../base/errors.ts';
import { ancestorsOf, isUid, rootOf } from '../../../base/uid.ts';
import type { CatalogTier, Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Entitlement, EntitlementImage } from '../../../contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find, findChildren } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { entitlements } from './entitlements.ts';

/*
 * An entitlement holds for its group and all groups below it. It restricts, and never gives access: to use an image, a
 * caller must be allowed to list it, entitled or not.
 */

export const isActive = ({ expirationTime }: Entitlement, now: number): boolean =>
  expirationTime === undefined || timestampMs(expirationTime) > now;

/** The entitlements of a group itself, oldest first. */
export async function findEntitlements(db: Reader, group: string): Promise<Stored<Entitlement>[]> {
  return (await findChildren(db, entitlements, group)).sort((a, b) => a.created - b.created);
}

/** The entitlements that `uid` names: itself, or those of the group with this uid. */
export async function findNamedEntitlements(db: Reader, uid: string): Promise<Stored<Entitlement>[]> {
  const named = await find(db, entitlements, uid);
  return named ? [named] : findEntitlements(db, uid);
}

/** The entitlements of a group and of the groups above it, from the organization downwards. */
async function findEntitlementsFor(db: Reader, group: string): Promise<Entitlement[]> {
  const found: Entitlement[] = [];
  for (const each of isUid(group) ? [...ancestorsOf(group), group] : []) {
    for (const { message } of await findEntitlements(db, each)) found.push(message);
  }
  return found;
}

/** The active entitlements of a group and of the groups above it. */
export const findActiveEntitlements = async ({ db, now }: ReadContext, group: string): Promise<Entitlement[]> =>
  (await findEntitlementsFor(db, group)).filter((each) => isActive(each, now));

/** The tiers of several entitlements, without duplicates. */
export const tiersOf = (all: readonly Entitlement[]): CatalogTier[] => [...new Set(all.flatMap(({ tiers }) => tiers))];

/** An image, and the entitlement that has it. */
export interface EntitledImage {
  readonly image: EntitlementImage;
  readonly entitlement: Entitlement;
}

/** The images of several entitlements. If several have an image, the one that expires last counts. */
export function imagesOf(all: readonly Entitlement[]): EntitledImage[] {
  const byRepo = new Map<string, EntitledImage>();
  for (const entitlement of all) {
    for (const image of entitlement.images) {
      const other = byRepo.get(image.repoUid)?.entitlement;
      if (!other || expiryOf(entitlement) > expiryOf(other)) byRepo.set(image.repoUid, { image, entitlement });
    }
  }
  return [...byRepo.values()];
}

const expiryOf = ({ expirationTime }: Entitlement): number =>
  expirationTime ? timestampMs(expirationTime) : Number.POSITIVE_INFINITY;

/**
 * Refuses a repo of another organization as the source of the repo `uid`, unless an active entitlement includes it. Groups
 * that never had an entitlement, as well as those above them, are not restricted.
 */
export async function requireEntitled({ db, now }: WriteContext, uid: string, source: Repo): Promise<void> {
  if (rootOf(uid) === rootOf(source.uid)) return;
  const all = await findEntitlementsFor(db, uid);
  if (all.length === 0 || all.some((each) => isActive(each, now) && includes(each, source))) return;
  throw precondition(
    'NOT_ENTITLED',
    source.uid,
    `no active entitlement includes the image ${source.name}; add it with :addImages, or ask an operator of the server`,
  );
}

const includes = ({ images, tiers }: Entitlement, { uid, catalogTier }: Repo): boolean =>
  tiers.includes(catalogTier) || images.some(({ repoUid }) => repoUid === uid);
