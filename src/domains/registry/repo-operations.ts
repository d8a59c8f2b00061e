import { create } from '@bufbuild/protobuf';
import { type Repo, RepoSchema, ReposService } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Operations, WriteContext } from '../../resource/context.ts';
import type { Resource } from '../../resource/definition.ts';
import { createResource, type Engine, standardOperations } from '../../resource/operations.ts';
import { readmeOperations } from './readme.ts';
import { repos } from './repos.ts';
import { presentFollowers, settleSource } from './sync-source.ts';

/** Repos with the rules about the repos that they follow. */
const governed: Resource<typeof RepoSchema> = {
  ...repos,
  async beforeCreate(ctx, repo, { uid }) {
    await settleSource(ctx, uid, repo);
    return undefined;
  },
  async beforeUpdate(ctx, { uid, message }, repo) {
    await settleSource(ctx, uid, repo, message as Repo);
    return undefined;
  },
  present: presentFollowers,
};

export const repoOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, governed, ReposService),
  ...readmeOperations,
});

/** Creates an empty repo, as a push to one that is not there does. */
export const createRepo = async (ctx: WriteContext, group: string, name: string): Promise<Repo> =>
  (await createResource(ctx, governed, create(RepoSchema, { name }), group)) as Repo;
