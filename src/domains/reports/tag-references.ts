import { invalid } from '../../base/errors.ts';
import { isUid } from '../../base/uid.ts';
import type { ReadContext } from '../../resource/operation.ts';
import { isTagName, tagName } from '../registry/repos/names.ts';
import { findRepoNamed } from '../registry/repos/repo-names.ts';
import { listTagNames } from '../registry/tags/tag-targets.ts';

/** Tags of a repo, as somebody asks for them. */
export interface RepoTags {
  /** A uid, a name such as `org/group/repo`, or the name alone where only one repo has it. */
  readonly repo: string;
  /** All tags of the repo when empty. */
  readonly tags: readonly string[];
  /** Where they were given, such as `image_refs[0].repo` and `image_refs[0].tags[2]`. */
  readonly fields: { readonly repo: string; tag(index: number): string };
}

/** The tags of one repo. */
export interface Tags {
  /** What the caller calls it. */
  readonly asked: string;
  readonly repo: string;
  readonly names: readonly string[];
}

/** Each tag has a history to follow, and reports to read. */
const MAX_TAGS = 100;

/** Finds the repos, as far as they are within reach, and their tags. */
export async function findTags(ctx: ReadContext, given: readonly RepoTags[]): Promise<Tags[]> {
  const found: Tags[] = [];
  let room = MAX_TAGS;
  for (const { repo: asked, tags, fields } of given) {
    const bad = tags.findIndex((tag) => !isTagName(tag));
    if (bad >= 0) throw invalid(fields.tag(bad), tagName(tags[bad] ?? '') ?? '');
    const repo = await reachedRepo(ctx, asked, fields.repo);
    if (repo === undefined) continue;
    const names = tags.length > 0 ? [...new Set(tags)] : await listTagNames(ctx.db, repo, { limit: room + 1 });
    room -= names.length;
    if (room < 0)
      throw invalid(fields.repo, `at most ${MAX_TAGS} tags can be asked for at once; name the ones you want`);
    found.push({ asked, repo, names });
  }
  return found;
}

/** What is out of reach, or is not there, has nothing to show. */
async function reachedRepo(ctx: ReadContext, asked: string, field: string): Promise<string | undefined> {
  const { capabilities } = ctx.method;
  if (!isUid(asked)) return findRepoNamed(ctx, capabilities, asked, field);
  return ctx.caller.can(capabilities, asked) ? asked : undefined;
}
