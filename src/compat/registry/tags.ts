import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { rootOf } from '../../base/uid.ts';
import {
  ListTagsRequestSchema,
  type Tag,
  TagSchema,
  TagsService,
} from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import { describeEol, type EolStatus, type EolTag, type GraceStatus } from '../../domains/registry/tags/eol-tags.ts';
import { findLatestVersionTag } from '../../domains/registry/tags/latest-version.ts';
import { findTagHistory } from '../../domains/registry/tags/tag-history.ts';
import { createTagWithoutImage, replaceTag } from '../../domains/registry/tags/tag-operations.ts';
import {
  type EventFacts,
  type Operations,
  type ReadContext,
  readOf,
  readOperation,
  type WriteContext,
  writeOperation,
} from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';
import { createViolationRenamer } from '../rename-violations.ts';
import { requireWrite } from '../typed-operation.ts';

const { method } = v1.Registry;
const { createTag, listTags, deleteTag } = TagsService.method;

const tagMapper = createMessageMapper(v1.TagSchema, TagSchema, {
  renames: { id: 'uid', last_updated: 'update_time' },
  onlyV2: ['create_time'],
});

const v1FieldNames = { uid: 'id', parent: 'repo_id' };
const renameViolations = createViolationRenamer(v1FieldNames);

/** The v1 flags exclude tags, the v2 flags include them. */
const toV2Flags = (filter: { excludeReferrers?: boolean; excludeDates: boolean; excludeEpochs: boolean }) => ({
  includeReferrers: !filter.excludeReferrers,
  includeDates: !filter.excludeDates,
  includeEpochs: !filter.excludeEpochs,
});

const eventOf = (_ctx: WriteContext, _request: unknown, tag: v1.Tag): EventFacts => ({
  subject: tag.id,
  extensions: { group: rootOf(tag.id) },
  body: { schema: v1.TagSchema, message: tag },
});

/** v2 has no method to change a tag, because a push does it. */
const updateTag = writeOperation(method.updateTag, {
  run: async (ctx, tag) => tagMapper.toV1(await replaceTag(ctx, tagMapper.toV2(tag))),
  event: eventOf,
});

/** In v1, a tag without a digest waits for its image. */
function createTagInV1(operations: Operations): Operations {
  const adapted = adapt(operations, method.createTag, createTag, {
    request: ({ repoId, tag }) => ({ parent: repoId, tag: tagMapper.toV2(tag) }),
    response: tagMapper.toV1,
    v1FieldNames,
  });
  const handlers = requireWrite(adapted, method.createTag);
  const v1Operation = writeOperation(method.createTag, {
    ...handlers,
    run(ctx, request, prepared) {
      const { repoId, tag } = request;
      if (tag?.digest !== '') return handlers.run(ctx, request, prepared);
      return renameViolations(async () =>
        tagMapper.toV1(await createTagWithoutImage(ctx, repoId, tagMapper.toV2(tag))),
      );
    },
    event: eventOf,
  });
  return { ...adapted, ...v1Operation };
}

const listTagHistory = readOperation(method.listTagHistory, async ({ db }, { parentId, start, end }) => {
  const moves = await findTagHistory(db, parentId, {
    ...(start && { from: timestampMs(start) }),
    ...(end && { to: timestampMs(end) }),
  });
  const items = moves.map(({ digest, changed }) => ({ digest, updateTimestamp: timestampFromMs(changed) }));
  return create(v1.TagHistoryListSchema, { items });
});

/** Finds the tag of a repo that changed last, among those that the flags include, and counts them. */
type FindLatestTag = (
  ctx: ReadContext,
  repo: string,
  flags: ReturnType<typeof toV2Flags>,
) => Promise<{ readonly latest: Tag | undefined; readonly count: bigint }>;

function createLatestTagFinder(operations: Operations): FindLatestTag {
  const list = readOf(operations, listTags);
  return async (ctx, repo, flags) => {
    const query = { uidp: { childrenOf: repo }, orderBy: 'update_time desc', pageSize: 1 };
    const { tags, totalCount } = await list(ctx, create(ListTagsRequestSchema, { ...query, ...flags }));
    return { latest: tags[0], count: totalCount ?? 0n };
  };
}

const getRepoTagsSummary = (findLatestTag: FindLatestTag): Operations =>
  readOperation(method.getRepoTagsSummary, async (ctx, { repoId, ...filter }) => {
    await requireRepo(ctx.db, repoId);
    const { latest, count } = await findLatestTag(ctx, repoId, toV2Flags(filter));
    return create(v1.RepoTagsSummarySchema, {
      id: repoId,
      tagCount: count,
      ...(latest?.updateTime && { lastUpdated: latest.updateTime, latestTag: tagMapper.toV1(latest) }),
      latestVersion: (await findLatestVersionTag(ctx.db, repoId)) ?? '',
    });
  });

/** A repo counts as recently updated if one of its tags changed within this time. */
const RECENT_MS = 24 * 3_600_000;

const getUpdateStatus = (findLatestTag: FindLatestTag): Operations =>
  readOperation(method.getUpdateStatus, async (ctx, { repoId }) => {
    await requireRepo(ctx.db, repoId);
    const all = { includeReferrers: true, includeDates: true, includeEpochs: true };
    const { latest } = await findLatestTag(ctx, repoId, all);
    const changed = latest?.updateTime ? timestampMs(latest.updateTime) : 0;
    return create(v1.UpdateStatusSchema, { recentlyUpdated: ctx.now - changed < RECENT_MS });
  });

/** The size of a page that names none, and of the largest page. Scripts written for v1 read only the first page. */
const MAX_EOL_TAGS = 1000;

/** Lists all tags, with the status that the declared life cycle of their version gives them. */
function listEolTags(operations: Operations): Operations {
  const list = readOf(operations, listTags);
  return readOperation(method.listEolTags, async (ctx, { uidp, name, pageToken, pageSize, ...filter }) => {
    const size = pageSize === 0n || pageSize > MAX_EOL_TAGS ? MAX_EOL_TAGS : Number(pageSize);
    const query = create(ListTagsRequestSchema, { ...(uidp && { uidp }), name, pageToken, ...toV2Flags(filter) });
    const items: EolTag[] = [];
    do {
      query.pageSize = Math.min(size - items.length, MAX_V2_PAGE);
      const page = await list(ctx, query);
      items.push(...(await describeEol(ctx, page.tags)));
      query.pageToken = page.nextPageToken;
    } while (query.pageToken !== '' && items.length < size);
    return create(v1.EolTagListSchema, { items: items.map(toV1EolTag), nextPageToken: query.pageToken });
  });
}

const MAX_V2_PAGE = 200;

const { TAG_ACTIVE, TAG_IN_GRACE, TAG_INACTIVE } = v1.EolTagStatus;
const { GRACE_NOT_ELIGIBLE, GRACE_ELIGIBLE, GRACE_ACTIVE, GRACE_BROKEN, GRACE_EXPIRED } = v1.EolGracePeriodStatus;

const tagStatuses: Readonly<Record<EolStatus, v1.EolTagStatus>> = {
  active: TAG_ACTIVE,
  'in grace': TAG_IN_GRACE,
  inactive: TAG_INACTIVE,
};

const graceStatuses: Readonly<Record<GraceStatus, v1.EolGracePeriodStatus>> = {
  'not eligible': GRACE_NOT_ELIGIBLE,
  eligible: GRACE_ELIGIBLE,
  active: GRACE_ACTIVE,
  broken: GRACE_BROKEN,
  expired: GRACE_EXPIRED,
};

const toV1EolTag = (tag: EolTag): MessageInitShape<typeof v1.EolTagSchema> => ({
  id: tag.uid,
  name: tag.name,
  mainPackageName: tag.mainPackageName,
  tagStatus: tagStatuses[tag.status],
  graceStatus: graceStatuses[tag.grace],
  mainPackageVersion: packageVersionOf(tag),
  ...(tag.lifecycle?.gracePeriodExpiryDate && {
    gracePeriodExpiryDate: timestampFromMs(Date.parse(tag.lifecycle.gracePeriodExpiryDate)),
  }),
});

/** A deprecated tag of a version that is not declared has the date of its deprecation. */
function packageVersionOf({ name, lifecycle, deprecated }: EolTag): MessageInitShape<typeof v1.PackageVersionSchema> {
  if (lifecycle) {
    const { version, releaseDate, eolDate, ltsDate, fips, eolBroken } = lifecycle;
    const lts = { lts: ltsDate !== '', legacyLts: ltsDate };
    return { exists: true, version, releaseDate, eolDate, ...lts, fips, eolBroken };
  }
  if (deprecated === undefined) return { exists: false };
  return { exists: true, version: name, eolDate: new Date(deprecated).toISOString().slice(0, 10) };
}

export function tagOperations(operations: Operations): Operations {
  const findLatestTag = createLatestTagFinder(operations);
  return {
    ...createTagInV1(operations),
    ...adaptList(operations, method.listTags, listTags, {
      request: ({ uidp, id, name, digest, updatedSince, ...filter }) => ({
        ...{ uidp: uidpFilterOf(uidp, id), name, digest },
        ...(updatedSince && { updatedSince }),
        ...toV2Flags(filter),
      }),
      response: ({ tags }) => tags.map(tagMapper.toV1),
    }),
    ...adapt(operations, method.deleteTag, deleteTag, { request: ({ id }) => ({ uid: id }), v1FieldNames }),
    ...updateTag,
    ...listTagHistory,
    ...getRepoTagsSummary(findLatestTag),
    ...getUpdateStatus(findLatestTag),
    ...listEolTags(operations),
  };
}
