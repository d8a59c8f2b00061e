import { create } from '@bufbuild/protobuf';
import { alreadyExists, invalid, notFound } from '../../../base/errors.ts';
import { newUid } from '../../../base/uid.ts';
import { type Tag, TagSchema, TagsService } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { Resource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations, WriteContext } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import { insert } from '../../../resource/write.ts';
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
    await requireClaim(ctx, parent, { name, digest, uid });
    return deprecationState(tag, ctx.now);
  },
  beforeDelete: (ctx, stored) => releaseTag(toRegistryWrite(ctx), stored),
};

const toRegistryWrite = ({ db, now, caller }: WriteContext): RegistryWrite => ({ db, now, actor: caller.uid });

async function requireClaim(ctx: WriteContext, repo: string, tag: Pick<Tag, 'name' | 'digest' | 'uid'>): Promise<void> {
  if (await claimTag(toRegistryWrite(ctx), repo, tag)) return;
  throw alreadyExists(tags.kind, tag.name, `a tag named ${tag.name} exists in ${repo}; push to move it`);
}

/** Creates a tag that waits for its image: a push gives it a digest. Until then, pulls do not find it. */
export async function createTagWithoutImage(ctx: WriteContext, repo: string, tag: Tag): Promise<Tag> {
  const { name, deprecated, bundles } = tag;
  const message = create(TagSchema, { name, deprecated, bundles });
  refuse([...validate(TagSchema, message, tags.rules, WITHOUT_DIGEST), ...(tags.check?.(message) ?? [])]);
  const parent = await requireParent(ctx.db.forShare, tags, repo);
  const uid = newUid(parent);
  await requireClaim(ctx, parent, { name, digest: '', uid });
  const draft = { message, uid, parent, state: deprecationState(message, ctx.now) };
  return (await insert(ctx.db, tags, draft, ctx.now)).message;
}

const WITHOUT_DIGEST: ReadonlySet<string> = new Set(
  TagSchema.fields.flatMap(({ name }) => (name === 'digest' ? [] : [name])),
);

/** Replaces all mutable fields of a tag. The name cannot be changed. An empty name or digest is ignored. */
export async function replaceTag(ctx: WriteContext, tag: Tag): Promise<Tag> {
  const { db } = ctx;
  const before = await find(db.forUpdate, tags, tag.uid);
  if (!before) throw notFound(tags.kind, tag.uid);
  const { name } = before.message;
  if (tag.name !== '' && tag.name !== name) throw invalid('name', 'cannot be changed; create another tag instead');
  const { deprecated, bundles } = tag;
  const digest = tag.digest || before.message.digest;
  const checked = create(TagSchema, { name, digest });
  refuse([
    ...validate(TagSchema, checked, tags.rules, digest === '' ? WITHOUT_DIGEST : undefined),
    ...(tags.check?.(tag) ?? []),
  ]);
  if (tag.digest !== '') await requireImage(db, before.parent, digest);
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
