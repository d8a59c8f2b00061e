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
import { holdManifest } from '../manifests/manifests.ts';
import { changeTag, claimTag, type RegistryWrite, releaseTag } from './tag-targets.ts';
import { deprecation, tags } from './tags.ts';

/** Tags with what pulls need kept in step, and their history. */
const governed: Resource<typeof TagSchema> = {
  ...tags,
  async beforeCreate(ctx, tag, { uid, parent }) {
    const { name, digest } = tag;
    await requireImage(ctx.db, parent, digest);
    if (!(await claimTag(asRegistryWrite(ctx), parent, { name, digest, uid }))) {
      throw alreadyExists(tags.kind, name, `a tag named ${name} exists in ${parent}; push to move it`);
    }
    return deprecation(tag, ctx.now);
  },
  beforeDelete: (ctx, stored) => releaseTag(asRegistryWrite(ctx), stored),
};

const asRegistryWrite = ({ db, now, caller }: WriteContext): RegistryWrite => ({ db, now, actor: caller.uid });

/** Replaces all that can be changed of a tag. Its name is what it is known by; left out, it stays. */
export async function replaceTag(ctx: WriteContext, asked: Tag): Promise<Tag> {
  const { db } = ctx;
  const before = await find(db.forUpdate, tags, asked.uid);
  if (!before) throw notFound(tags.kind, asked.uid);
  const { name } = before.message as Tag;
  if (asked.name !== '' && asked.name !== name) throw invalid('name', 'cannot be changed; create another tag instead');
  const { digest, deprecated, bundles } = asked;
  refuse([...validate(TagSchema, create(TagSchema, { name, digest }), tags.rules), ...(tags.check?.(asked) ?? [])]);
  await requireImage(db, before.parent, digest);
  const after = await changeTag(asRegistryWrite(ctx), before, { digest, deprecated, bundles });
  if (after === before) ctx.unchanged();
  return after.message as Tag;
}

async function requireImage(db: Transaction, repo: string, digest: string): Promise<void> {
  if (await holdManifest(db, repo, digest)) return;
  throw invalid('digest', `there is no image ${digest} in this repo; push it first`);
}

export const tagOperations = (engine: Engine): Operations => standardOperations(engine, governed, TagsService);
