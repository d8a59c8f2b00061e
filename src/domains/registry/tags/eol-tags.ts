import { parentOf } from '../../../base/uid.ts';
import type { Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ListTagsRequestSchema, type Tag } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { createLister, type ListRequest } from '../../../resource/list/list.ts';
import type { PageTokens } from '../../../resource/list/page-token.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { repos } from '../repos/repos.ts';
import { deprecatedSince, tags } from './tags.ts';

/** A tag that has reached its end of life. */
export interface EolTag {
  readonly uid: string;
  readonly name: string;
  /** What its repo is called. */
  readonly repo: string;
  /** When it was marked so; undefined when nobody noted it. */
  readonly since: number | undefined;
}

export interface EolTagPage {
  readonly tags: readonly EolTag[];
  readonly nextPageToken: string;
}

/** Pages of tags that are deprecated. Requests are those of ListTags. */
export function createEolTags(tokens: PageTokens): (ctx: ReadContext, request: ListRequest) => Promise<EolTagPage> {
  const list = createLister(tags, ListTagsRequestSchema, tokens, [{ field: 'deprecated', values: ['true'] }]);
  return async (ctx, request) => {
    const { messages, nextPageToken } = await list(ctx, request);
    const uids = messages.map((message) => (message as Tag).uid);
    const names = await namesOf(ctx, uids.map(parentOf));
    const found = await findAll(ctx.db, tags, uids);
    const byUid = new Map(found.map(({ uid, state }) => [uid, deprecatedSince(state)]));
    return {
      tags: (messages as Tag[]).map(({ uid, name }) => ({
        uid,
        name,
        repo: names.get(parentOf(uid)) ?? '',
        since: byUid.get(uid),
      })),
      nextPageToken,
    };
  };
}

async function namesOf({ db }: ReadContext, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = await findAll(db, repos, [...new Set(uids)]);
  return new Map(found.map(({ uid, message }) => [uid, (message as Repo).name]));
}
