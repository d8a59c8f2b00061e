import { create, type DescMessage, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import { parentOf, parseUid, type Uid } from '../../base/uid.ts';
import type { CatalogTier } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry_entitlements.platform_pb.js';
import {
  type Entitlement,
  type EntitlementImage,
  EntitlementSchema,
  EntitlementsService,
  EntitlementType,
} from '../../contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import { groups } from '../../domains/iam/groups/groups.ts';
import { findCatalogImages } from '../../domains/registry/entitlements/catalog-images.ts';
import {
  type ChangedImages,
  changeImages,
  type ImageChange,
} from '../../domains/registry/entitlements/change-images.ts';
import {
  findActiveEntitlements,
  findEntitlements,
  findNamedEntitlements,
  imagesOf,
  isActive,
  tiersOf,
} from '../../domains/registry/entitlements/effective-entitlements.ts';
import { sumOfLimits, sumOfQuotas } from '../../domains/registry/entitlements/image-quotas.ts';
import {
  type EventFacts,
  type Operations,
  type ReadContext,
  readOperation,
  type WriteContext,
  writeOperation,
} from '../../resource/operation.ts';
import { exists } from '../../resource/read.ts';
import { requireCapabilities } from '../../resource/require-capabilities.ts';
import { adapt } from '../adapt.ts';
import { adaptList } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';
import { tierConverter } from './repo-mapping.ts';

const { method } = v1.Entitlements;

const v1FieldNames = { uid: 'id', 'uidp.children_of': 'parent' };

const tiersConverter = {
  toV2: (tiers: readonly Parameters<typeof tierConverter.toV2>[0][]) => tiers.map(tierConverter.toV2),
  toV1: (tiers: readonly CatalogTier[]) => tiers.map(tierConverter.toV1),
};

/** The images of an entitlement have methods of their own in v1. */
const mapper = createMessageMapper(v1.EntitlementSchema, EntitlementSchema, {
  renames: { id: 'uid' },
  onlyV2: ['images', 'swaps_used'],
  converters: { tiers: tiersConverter },
});

const toImage = ({
  repoUid,
  name,
  catalogTier,
}: EntitlementImage): MessageInitShape<typeof v1.EntitlementImageSchema> => ({
  id: repoUid,
  name,
  tier: tierConverter.toV1(catalogTier),
});

const toEntitledImage = (
  { repoUid, name, catalogTier }: EntitlementImage,
  { type, expirationTime }: Entitlement,
): MessageInitShape<typeof v1.EntitledImageSchema> => ({
  id: repoUid,
  name,
  catalogTier: tierConverter.toV1(catalogTier),
  // The types have the same numbers in both messages.
  type: type as number as v1.Entitlement_Type,
  ...(expirationTime && { expirationTime }),
});

async function requireGroup({ db }: ReadContext, uid: string): Promise<void> {
  if (!(await exists(db, groups.kind, uid))) throw notFound(groups.kind, uid);
}

function planOf(active: readonly Entitlement[]): v1.Plan {
  if (active.length === 0) return v1.Plan.PLAN_UNSPECIFIED;
  if (active.some(({ tiers }) => tiers.length > 0)) return v1.Plan.CATALOG;
  return active.every(({ type }) => type === EntitlementType.STARTER) ? v1.Plan.STARTER : v1.Plan.PER_IMAGE;
}

const listEntitlementImages = readOperation(method.listEntitlementImages, async ({ db }, { parent }) => {
  const named = await findNamedEntitlements(db, parent);
  const images = imagesOf(named.map(({ message }) => message)).map(({ image }) => toImage(image));
  return create(v1.EntitlementImagesListSchema, { images });
});

const listEntitlementCatalogImages = readOperation(method.listEntitlementCatalogImages, async (ctx, { parent }) => {
  const active = (await findNamedEntitlements(ctx.db, parent)).filter(({ message }) => isActive(message, ctx.now));
  const found = await findCatalogImages(ctx, parent, tiersOf(active.map(({ message }) => message)));
  const images = found.map(({ uid: id, name, catalogTier }) => ({ id, name, tier: tierConverter.toV1(catalogTier) }));
  return create(v1.EntitlementImagesListSchema, { images });
});

const summary = readOperation(method.summary, async (ctx, { parent }) => {
  await requireGroup(ctx, parent);
  const all = await findEntitlements(ctx.db, parent);
  const active = all.filter(({ message }) => isActive(message, ctx.now)).map(({ message }) => message);
  return create(v1.EntitlementSummaryResponseSchema, {
    quota: sumOfQuotas(active),
    ...(all.length > 0 && { lastUpdatedTime: timestampFromMs(Math.max(...all.map(({ updated }) => updated))) }),
  });
});

const getEffectiveEntitlements = readOperation(method.getEffectiveEntitlements, async (ctx, { parent }) => {
  await requireGroup(ctx, parent);
  const active = await findActiveEntitlements(ctx, parent);
  const quota = sumOfQuotas(active);
  return create(v1.GetEffectiveEntitlementsResponseSchema, {
    plan: planOf(active),
    activeTiers: tiersConverter.toV1(tiersOf(active)),
    activeImages: imagesOf(active).map(({ image, entitlement }) => toEntitledImage(image, entitlement)),
    quota,
    maxTotalImages: sumOfLimits(quota),
    swapsUsed: active.reduce((sum, { swapsUsed }) => sum + swapsUsed, 0),
  });
});

/** No entitlement gives a group these features, because the server neither builds nor copies images. */
const getFeatures = readOperation(method.getFeatures, async (ctx, { parent }) => {
  await requireGroup(ctx, parent);
  return create(v1.GetFeaturesResponseSchema, { customAssembly: false, uniqueTags: false });
});

/** The part of a request that names an entitlement or its group. */
interface ImagesRequest {
  readonly entitlement: { readonly case: 'parent' | 'id'; readonly value: string } | { readonly case: undefined };
}

/** Changes images, after it has checked the capabilities of the method at what the request names. */
async function change(ctx: WriteContext, { entitlement: named }: ImagesRequest, asked: ImageChange) {
  if (named.case === undefined) throw invalid('parent', 'is required, unless id names an entitlement');
  const uid: Uid = parseUid(named.case, named.value);
  requireCapabilities(ctx.method.capabilities, ctx.caller, uid);
  const changed: ChangedImages = await changeImages(ctx, uid, asked);
  const toV1 = (image: EntitlementImage) => toEntitledImage(image, changed.entitlement.message);
  return {
    parent: parentOf(changed.entitlement.uid),
    added: changed.added.map(toV1),
    removed: changed.removed.map(toV1),
  };
}

const addEntitlementImages = writeOperation(method.addEntitlementImages, {
  async run(ctx, request) {
    const { parent, added } = await change(ctx, request, { add: { field: 'image_names', names: request.imageNames } });
    return create(v1.AddEntitlementImagesResponseSchema, { parent, images: added });
  },
  event: (_ctx, _request, message) => eventOf(v1.AddEntitlementImagesResponseSchema, message),
});

const removeEntitlementImages = writeOperation(method.removeEntitlementImages, {
  async run(ctx, request) {
    const remove = { field: 'image_names', names: request.imageNames };
    const { parent, removed } = await change(ctx, request, { remove });
    return create(v1.RemoveEntitlementImagesResponseSchema, { parent, images: removed });
  },
  event: (_ctx, _request, message) => eventOf(v1.RemoveEntitlementImagesResponseSchema, message),
});

const swapEntitlementImages = writeOperation(method.swapEntitlementImages, {
  async run(ctx, request) {
    const { removeImageNames, addImageNames } = request;
    const swapped = await change(ctx, request, {
      remove: { field: 'remove_image_names', names: removeImageNames },
      add: { field: 'add_image_names', names: addImageNames },
    });
    return create(v1.SwapEntitlementImagesResponseSchema, swapped);
  },
  event: (_ctx, _request, message) => eventOf(v1.SwapEntitlementImagesResponseSchema, message),
});

/** The events of all three methods are about the group of the entitlement. */
const eventOf = (schema: DescMessage, message: Message & { readonly parent: string }): EventFacts => ({
  subject: message.parent,
  extensions: { group: message.parent },
  body: { schema, message },
});

export const entitlementOperations = (operations: Operations): Operations => ({
  ...adaptList(operations, method.listEntitlements, EntitlementsService.method.listEntitlements, {
    request: ({ parent }) => ({ uidp: { childrenOf: parent } }),
    response: ({ entitlements }) => entitlements.map(mapper.toV1),
    v1FieldNames,
  }),
  ...adapt(operations, method.createEntitlement, EntitlementsService.method.createEntitlement, {
    request: ({ parent, entitlement }) => ({ parent, entitlement: mapper.toV2(entitlement) }),
    response: mapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, method.deleteEntitlement, EntitlementsService.method.deleteEntitlement, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...listEntitlementImages,
  ...listEntitlementCatalogImages,
  ...summary,
  ...getEffectiveEntitlements,
  ...getFeatures,
  ...addEntitlementImages,
  ...removeEntitlementImages,
  ...swapEntitlementImages,
});
