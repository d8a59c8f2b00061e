import { alreadyExists, invalid } from '../../base/errors.ts';
import { type TagSchema, TagsService } from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { Operations, WriteContext } from '../../resource/context.ts';
import type { Resource } from '../../resource/definition.ts';
import { type Engine, standardOperations } from '../../resource/operations.ts';
import { holdManifest } from './manifests.ts';
import { claimTag, type RegistryWrite, releaseTag } from './tag-targets.ts';
import { tags } from './tags.ts';

/** Tags with what pulls need kept in step, and their history. */
const governed: Resource<typeof TagSchema> = {
  ...tags,
  async beforeCreate(ctx, tag, { uid, parent }) {
    const { name, digest } = tag;
    if (!(await holdManifest(ctx.db, parent, digest))) {
      throw invalid('digest', `there is no image ${digest} in this repo; push it first`);
    }
    if (!(await claimTag(asRegistryWrite(ctx), parent, { name, digest, uid }))) {
      throw alreadyExists(tags.kind, name, `a tag named ${name} exists in ${parent}; push to move it`);
    }
    return undefined;
  },
  beforeDelete: (ctx, stored) => releaseTag(asRegistryWrite(ctx), stored),
};

const asRegistryWrite = ({ db, now, caller }: WriteContext): RegistryWrite => ({ db, now, actor: caller.uid });

export const tagOperations = (engine: Engine): Operations => standardOperations(engine, governed, TagsService);
