import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type Repo,
  type RepoSchema,
  ReposService,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Resource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations, WriteContext } from '../../../resource/operation.ts';
import { find, findByKey } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { readmeOperations } from './readme.ts';
import { repoKey, repos } from './repos.ts';
import { follows, presentFollowers, settleSource } from './sync-source.ts';

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
  needsPresent: follows,
};

export const repoOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, governed, ReposService),
  ...readmeOperations,
});

/** The repo of this name in a group, if there is one that the caller may see. */
export async function findRepoIn(ctx: WriteContext, group: string, name: string): Promise<Repo | undefined> {
  const uid = await findByKey(ctx.db, repos, repoKey(group, name));
  if (uid === undefined || !ctx.caller.can([Capability.CAP_REPO_LIST], uid)) return undefined;
  const found = (await find(ctx.db, repos, uid))?.message as Repo | undefined;
  if (found) await presentFollowers(ctx, [found]);
  return found;
}
