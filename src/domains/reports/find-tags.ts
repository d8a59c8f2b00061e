import { invalid } from '../../base/errors.ts';
import { startSlices } from '../../base/slices.ts';
import { isUid, type Uid } from '../../base/uid.ts';
import type { ReadContext } from '../../resource/operation.ts';
import { findRepoByReference } from '../registry/repos/find-repo-by-reference.ts';
import { isTagName, tagNameRule } from '../registry/repos/name-rules.ts';
import { listTagNames } from '../registry/tags/tag-targets.ts';

/** The tags of a repo that a request names. */
export interface TagQuery {
  /** A uid, a path such as `org/group/repo`, or a name that only one repo within the caller's reach has. */
  readonly repo: string;
  /** All tags of the repo when empty. */
  readonly tags: readonly string[];
  /** The request fields, such as `image_refs[0].repo` and `image_refs[0].tags[2]`, for errors. */
  readonly fields: { readonly repo: string; tag(index: number): string };
}

export interface FoundTags {
  /** The repo as the request names it. */
  readonly requestedRepo: string;
  /** The uid of the repo. */
  readonly repo: Uid;
  readonly names: readonly string[];
}

/** The most tags of a request, unless the method allows more. For each tag, its history and reports are read. */
const MAX_TAGS = 100;

/** Finds the tags of repos. Repos that do not exist or that the caller does not reach are left out. */
export async function findTags(
  ctx: ReadContext,
  queries: readonly TagQuery[],
  maxTags = MAX_TAGS,
): Promise<FoundTags[]> {
  const found: FoundTags[] = [];
  let remaining = maxTags;
  const slices = startSlices();
  for (const { repo: requestedRepo, tags, fields } of queries) {
    // Reads of SQLite are synchronous, and a request may name thousands of repos.
    if (slices.isOver()) await slices.next();
    const wrong = tags.findIndex((tag) => !isTagName(tag));
    if (wrong >= 0) throw invalid(fields.tag(wrong), tagNameRule(tags[wrong] ?? '') ?? '');
    const repo = await findReadableRepo(ctx, requestedRepo, fields.repo);
    if (repo === undefined) continue;
    const names = tags.length > 0 ? [...new Set(tags)] : await listTagNames(ctx.db, repo, { limit: remaining + 1 });
    remaining -= names.length;
    if (remaining < 0)
      throw invalid(fields.repo, `a request can cover at most ${maxTags} tags; name the tags that you need`);
    found.push({ requestedRepo, repo, names });
  }
  return found;
}

async function findReadableRepo(ctx: ReadContext, text: string, field: string): Promise<Uid | undefined> {
  const { capabilities } = ctx.method;
  if (!isUid(text)) return findRepoByReference(ctx, capabilities, text, field);
  return ctx.caller.can(capabilities, text) ? text : undefined;
}
