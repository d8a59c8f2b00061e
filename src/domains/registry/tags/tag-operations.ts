import { create } from '@bufbuild/protobuf';
import { alreadyExists, invalid, notFound } from '../../../base/errors.ts';
import { type Tag, TagSchema, TagsService } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { Resource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import type { Transaction } from '../../../store/store.ts';
import { lockManifest } from '../manifests/manifests.ts';
import { changeTag, claimTag, type RegistryWrite, releaseTag } from './tag-targets.ts';
import { deprecationState, tags } from './tags.ts';

/** Tags whose creation and deletion also update tag_target and tag_history. */
const tagsWithTargets: Resource<typeof TagSchema> = {
  ...tags,
  async beforeCreate(ctx, tag, { uid, parent }) {
    const { name, digest } = tag;
    await requireImage(ctx.db, parent, digest);
    if (!(await claimTag(toRegistryWrite(ctx), parent, { name, digest, uid }))) {
      throw alreadyExists(tags.kind, name, `a tag named ${name} exists in ${parent}; push to move it`);
    }
    return deprecationState(tag, ctx.now);
  },
  beforeDelete: (ctx, stored) => releaseTag(toRegistryWrite(ctx), stored),
};

const toRegistryWrite = ({ db, now, caller }: WriteContext): RegistryWrite => ({ db, now, actor: caller.uid });

/** Replaces all mutable fields of a tag. The name cannot be changed; an empty one is ignored. */
export async function replaceTag(ctx: WriteContext, tag: Tag): Promise<Tag> {
  const { db } = ctx;
  const before = await find(db.forUpdate, tags, tag.uid);
  if (!before) throw notFound(tags.kind, tag.uid);
  const { name } = before.message;
  if (tag.name !== '' && tag.name !== name) throw invalid('name', 'cannot be changed; create another tag instead');
  const { digest, deprecated, bundles } = tag;
  refuse([...validate(TagSchema, create(TagSchema, { name, digest }), tags.rules), ...(tags.check?.(tag) ?? [])]);
  await requireImage(db, before.parent, digest);
  const after = await changeTag(toRegistryWrite(ctx), before, { digest, deprecated, bundles });
  if (after === before) ctx.unchanged();
  return after.message;
}

/** Refuses a digest that the repo does not have, and locks the manifest otherwise. */
async function requireImage(db: Transaction, repo: string, digest: string): Promise<void> {
  if (await lockManifest(db, repo, digest)) return;
  throw invalid('digest', `there is no image ${digest} in this repo; push it first`);
}

export const tagOperations = (engine: Engine): Operations => standardOperations(engine, tagsWithTargets, TagsService);
