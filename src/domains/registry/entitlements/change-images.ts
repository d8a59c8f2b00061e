import { clone, create } from '@bufbuild/protobuf';
import { type ApiError, invalid, notFound, precondition, quotaExceeded } from '../../../base/errors.ts';
import { isUid, type Uid } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type Entitlement,
  type EntitlementImage,
  EntitlementImageSchema,
  EntitlementSchema,
} from '../../../contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { exists, find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { groups } from '../../iam/groups/groups.ts';
import { findRepoByReference } from '../repos/find-repo-by-reference.ts';
import { repos } from '../repos/repos.ts';
import { findNamedEntitlements, isActive } from './effective-entitlements.ts';
import { entitlements } from './entitlements.ts';
import { countImages, quotaProblem } from './image-quotas.ts';

const LIST = [Capability.CAP_REPO_LIST];
/** Each name is looked up in the transaction. */
const MAX_NAMES = 500;
/** The images are part of the message of the entitlement. */
const MAX_IMAGES = 2000;

/** Names of images, and the request field that has them. */
export interface NamedImages {
  readonly field: string;
  readonly names: readonly string[];
}

export interface ImageChange {
  readonly remove?: NamedImages;
  readonly add?: NamedImages;
}

export interface ChangedImages {
  readonly entitlement: Stored<Entitlement>;
  readonly removed: readonly EntitlementImage[];
  readonly added: readonly EntitlementImage[];
}

/**
 * Changes the images of the entitlement `uid`, or of the first entitlement of the group `uid` that allows the change. Images
 * are only added to an active entitlement.
 */
export async function changeImages(ctx: WriteContext, uid: Uid, change: ImageChange): Promise<ChangedImages> {
  requireNames(change.remove);
  requireNames(change.add);
  const candidates = await findCandidates(ctx, uid, change.add !== undefined);
  const added = change.add ? await findImages(ctx, change.add) : [];
  const attempts = candidates.map((before) => ({ before, ...applyChange(before.message, change.remove, added) }));
  const attempt = attempts.find(({ problem }) => !problem) ?? attempts[0];
  if (!attempt) throw notFound(entitlements.kind, uid);
  const { before, message, removed, problem } = attempt;
  if (problem) throw problem;
  if (removed.length === 0 && message.images.length === before.message.images.length) {
    ctx.unchanged();
    return { entitlement: before, removed, added };
  }
  if (change.remove && change.add) message.swapsUsed += added.length;
  const entitlement = await update(ctx.db, entitlements, before, { message, state: before.state }, ctx.now);
  return { entitlement, removed, added };
}

function requireNames(named: NamedImages | undefined): void {
  if (!named) return;
  if (named.names.length === 0) throw invalid(named.field, 'is required');
  if (named.names.length > MAX_NAMES) throw invalid(named.field, `must have at most ${MAX_NAMES} items`);
}

/** The entitlements that can be changed, locked for update. */
async function findCandidates(
  { db, now }: WriteContext,
  uid: Uid,
  mustBeActive: boolean,
): Promise<Stored<Entitlement>[]> {
  const named = await findNamedEntitlements(db.forUpdate, uid);
  if (named.length === 0 && !(await exists(db, groups.kind, uid))) throw notFound(groups.kind, uid);
  const candidates = mustBeActive ? named.filter(({ message }) => isActive(message, now)) : named;
  if (candidates.length > 0) return candidates;
  throw precondition('NO_ENTITLEMENT', uid, `${uid} has no active entitlement; ask an operator of the server for one`);
}

/** The repos with the given uids, names or image references, as images of an entitlement. */
async function findImages(ctx: WriteContext, { field, names }: NamedImages): Promise<EntitlementImage[]> {
  const found = new Map<string, EntitlementImage>();
  for (const [at, text] of names.entries()) {
    const uid = isUid(text) ? text : await findRepoByReference(ctx, LIST, text, `${field}[${at}]`);
    const repo = uid !== undefined && ctx.caller.can(LIST, uid) ? await find(ctx.db, repos, uid) : undefined;
    if (!repo) throw invalid(`${field}[${at}]`, `there is no repo ${text}, or you may not list it`);
    const { name, catalogTier } = repo.message;
    found.set(repo.uid, create(EntitlementImageSchema, { repoUid: repo.uid, name, catalogTier }));
  }
  return [...found.values()];
}

interface AppliedChange {
  readonly message: Entitlement;
  readonly removed: readonly EntitlementImage[];
  readonly problem?: ApiError | undefined;
}

/** Returns the entitlement after a change, and why it is not allowed. */
function applyChange(
  before: Entitlement,
  remove: NamedImages | undefined,
  added: readonly EntitlementImage[],
): AppliedChange {
  const message = clone(EntitlementSchema, before);
  const isNamed = ({ name, repoUid }: EntitlementImage, text: string) => name === text || repoUid === text;
  const missing = remove?.names.findIndex((text) => !before.images.some((image) => isNamed(image, text))) ?? -1;
  if (remove && missing >= 0) {
    const problem = invalid(`${remove.field}[${missing}]`, `${before.uid} has no image ${remove.names[missing]}`);
    return { message, removed: [], problem };
  }
  const removed = before.images.filter((image) => remove?.names.some((text) => isNamed(image, text)));
  const kept = before.images.filter((image) => !removed.includes(image));
  message.images = [...kept, ...added.filter(({ repoUid }) => !kept.some((image) => image.repoUid === repoUid))];
  countImages(message);
  return { message, removed, problem: added.length > 0 ? tooManyImages(message) : undefined };
}

function tooManyImages(entitlement: Entitlement): ApiError | undefined {
  const { uid, images } = entitlement;
  const problem = images.length > MAX_IMAGES ? `can have at most ${MAX_IMAGES} images` : quotaProblem(entitlement);
  return problem === undefined ? undefined : quotaExceeded(uid, `the entitlement ${uid} ${problem}`);
}
