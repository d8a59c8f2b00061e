import { parentOf } from '../../../base/uid.ts';
import { ListTagsRequestSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { createLister, type ListRequest } from '../../../resource/list/list.ts';
import type { PageTokens } from '../../../resource/list/page-token.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { repos } from '../repos/repos.ts';
import { deprecatedSince, tags } from './tags.ts';

/** A deprecated tag: one that has reached its end of life. */
export interface EolTag {
  readonly uid: string;
  readonly name: string;
  /** The name of its repo. */
  readonly repo: string;
  /** When it was deprecated; undefined when the time was not recorded. */
  readonly since: number | undefined;
}

export interface EolTagPage {
  readonly tags: readonly EolTag[];
  readonly nextPageToken: string;
}

/** Creates a function that returns a page of the deprecated tags for a request of ListTags. */
export function createEolTagLister(
  pageTokens: PageTokens,
): (ctx: ReadContext, request: ListRequest) => Promise<EolTagPage> {
  const list = createLister(tags, ListTagsRequestSchema, pageTokens, [{ field: 'deprecated', values: ['true'] }]);
  return async (ctx, request) => {
    const { messages: page, nextPageToken } = await list(ctx, request);
    const uids = page.map(({ uid }) => uid);
    const repoNames = await findRepoNames(ctx, uids.map(parentOf));
    // A page has no private state, so that the times are read separately.
    const stored = await findAll(ctx.db, tags, uids);
    const times = new Map<string, number | undefined>(stored.map(({ uid, state }) => [uid, deprecatedSince(state)]));
    return {
      tags: page.map(({ uid, name }) => ({
        uid,
        name,
        repo: repoNames.get(parentOf(uid)) ?? '',
        since: times.get(uid),
      })),
      nextPageToken,
    };
  };
}

async function findRepoNames({ db }: ReadContext, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = await findAll(db, repos, [...new Set(uids)]);
  return new Map(found.map(({ uid, message }) => [uid, message.name]));
}
