import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { rootOf } from '../../base/uid.ts';
import {
  type ListTagsRequest,
  ListTagsRequestSchema,
  type ListTagsResponse,
  TagSchema,
  TagsService,
} from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import { createEolTags, type EolTag } from '../../domains/registry/tags/eol-tags.ts';
import { historyOf } from '../../domains/registry/tags/tag-history.ts';
import { replaceTag } from '../../domains/registry/tags/tag-operations.ts';
import { latestVersion } from '../../domains/registry/tags/versions.ts';
import type { ListRequest } from '../../resource/list/list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import type { Operation, Operations, ReadContext } from '../../resource/operation.ts';
import { adapt, idOf } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

const { method } = v1.Registry;
const { createTag, listTags, deleteTag } = TagsService.method;

const words = vocabulary(v1.TagSchema, TagSchema, {
  names: { id: 'uid', last_updated: 'update_time' },
  onlyV2: ['create_time'],
});

const fields = { uid: 'id', parent: 'repo_id' };

/** v2 shows less unless asked, v1 shows all unless asked. */
const shown = (filter: { excludeReferrers?: boolean; excludeDates: boolean; excludeEpochs: boolean }) => ({
  includeReferrers: !filter.excludeReferrers,
  includeDates: !filter.excludeDates,
  includeEpochs: !filter.excludeEpochs,
});

/** v2 tags change by a push only. */
const updateTag: Operation = {
  mode: 'write',
  run: async (ctx, request) => words.toV1(await replaceTag(ctx, words.toV2(request as v1.Tag))),
  event(_ctx, _request, response) {
    const { id } = response as v1.Tag;
    return {
      subject: id,
      extensions: { group: rootOf(id) },
      body: { schema: v1.TagSchema, message: response },
    };
  },
};

const listTagHistory: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { parentId, start, end } = request as v1.TagHistoryFilter;
    const moves = await historyOf(db, parentId, {
      ...(start && { from: timestampMs(start) }),
      ...(end && { to: timestampMs(end) }),
    });
    const items = moves.map(({ digest, changed }) => ({ digest, updateTimestamp: timestampFromMs(changed) }));
    return create(v1.TagHistoryListSchema, { items });
  },
};

/** What v2 lists of a repo, one after the other in the order asked for. */
type ListOf = (ctx: ReadContext, request: MessageInitShape<typeof ListTagsRequestSchema>) => Promise<ListTagsResponse>;

const getRepoTagsSummary = (list: ListOf): Operation => ({
  mode: 'read',
  async run(ctx, request) {
    const { repoId, ...filter } = request as v1.GetRepoTagsSummaryRequest;
    await requireRepo(ctx.db, repoId);
    const { tags, totalCount } = await list(ctx, latestOf(repoId, shown(filter)));
    const [latest] = tags;
    return create(v1.RepoTagsSummarySchema, {
      id: repoId,
      tagCount: totalCount ?? 0n,
      ...(latest?.updateTime && { lastUpdated: latest.updateTime, latestTag: words.toV1(latest) }),
      latestVersion: (await latestVersion(ctx.db, repoId)) ?? '',
    });
  },
});

const latestOf = (repo: string, flags: ReturnType<typeof shown>) => ({
  ...{ uidp: { childrenOf: repo }, orderBy: 'update_time desc', pageSize: 1 },
  ...flags,
});

/** What changed within this time is new. */
const RECENT_MS = 24 * 3_600_000;

const getUpdateStatus = (list: ListOf): Operation => ({
  mode: 'read',
  async run(ctx, request) {
    const { repoId } = request as v1.UpdateStatusRequest;
    await requireRepo(ctx.db, repoId);
    const all = { includeReferrers: true, includeDates: true, includeEpochs: true };
    const [latest] = (await list(ctx, latestOf(repoId, all))).tags;
    const changed = latest?.updateTime ? timestampMs(latest.updateTime) : 0;
    return create(v1.UpdateStatusSchema, { recentlyUpdated: ctx.now - changed < RECENT_MS });
  },
});

function listEolTags(tokens: PageTokens): Operation {
  const list = createEolTags(tokens);
  return {
    mode: 'read',
    async run(ctx, request) {
      const { uidp, name, pageToken, pageSize, ...filter } = request as v1.EolTagFilter;
      const asked = create(ListTagsRequestSchema, {
        ...(uidp && { uidp }),
        ...{ name, pageToken, pageSize: inRange(pageSize) },
        ...shown(filter),
      });
      const { tags, nextPageToken } = await list(ctx, asked as ListTagsRequest & ListRequest);
      return create(v1.EolTagListSchema, { items: tags.map(eolTag), nextPageToken });
    },
  };
}

/** v1 counts in 64 bits what no page holds. */
const inRange = (size: bigint): number => Number(size > 200n ? 200n : size);

/** Nobody here gives a grace period. */
const eolTag = ({ uid, name, repo, since }: EolTag): MessageInitShape<typeof v1.EolTagSchema> => ({
  id: uid,
  name,
  mainPackageName: repo,
  tagStatus: v1.EolTagStatus.TAG_INACTIVE,
  graceStatus: v1.EolGracePeriodStatus.GRACE_NOT_ELIGIBLE,
  mainPackageVersion: {
    exists: true,
    version: name,
    ...(since !== undefined && { eolDate: new Date(since).toISOString().slice(0, 10) }),
  },
});

export function tagOperations(operations: Operations, tokens: PageTokens): Operations {
  const { run } = operations[idOf(listTags)] as Extract<Operation, { mode: 'read' }>;
  const list: ListOf = async (ctx, request) => (await run(ctx, create(listTags.input, request))) as ListTagsResponse;
  return {
    ...adapt(operations, method.createTag, createTag, {
      request: ({ repoId, tag }) => ({ parent: repoId, tag: words.toV2(tag) }),
      response: words.toV1,
      fields,
    }),
    ...listAll(operations, method.listTags, listTags, {
      request: ({ uidp, id, name, digest, updatedSince, ...filter }) => ({
        ...{ uidp: within(uidp, id), name, digest },
        ...(updatedSince && { updatedSince }),
        ...shown(filter),
      }),
      response: ({ tags }) => tags.map(words.toV1),
    }),
    ...adapt(operations, method.deleteTag, deleteTag, { request: ({ id }) => ({ uid: id }), fields }),
    [idOf(method.updateTag)]: updateTag,
    [idOf(method.listTagHistory)]: listTagHistory,
    [idOf(method.getRepoTagsSummary)]: getRepoTagsSummary(list),
    [idOf(method.getUpdateStatus)]: getUpdateStatus(list),
    [idOf(method.listEolTags)]: listEolTags(tokens),
  };
}
