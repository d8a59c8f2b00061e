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
import { hasSourceRepo, repoKey, repos } from './repos.ts';
import { applySyncSource, presentSyncedFields, withoutSyncedFields } from './sync-source.ts';

const reposWithSyncSource: Resource<typeof RepoSchema> = {
  ...repos,
  async beforeCreate(ctx, repo, { uid }) {
    await applySyncSource(ctx, uid, repo);
    return undefined;
  },
  async beforeUpdate(ctx, before, repo, touched) {
    await applySyncSource(ctx, before.uid, repo, before.message, touched);
    return undefined;
  },
  present: presentSyncedFields,
  needsPresent: hasSourceRepo,
  event: (change, repo) => (change !== 'delete' && hasSourceRepo(repo) ? { message: withoutSyncedFields(repo) } : {}),
};

export const repoOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, reposWithSyncSource, ReposService),
  ...readmeOperations,
});

/** The repo with this name in a group, if the caller may list it. */
export async function findRepoByName(ctx: WriteContext, group: string, name: string): Promise<Repo | undefined> {
  const uid = await findByKey(ctx.db, repos, repoKey(group, name));
  if (uid === undefined || !ctx.caller.can([Capability.CAP_REPO_LIST], uid)) return undefined;
  const repo = (await find(ctx.db, repos, uid))?.message;
  if (repo) await presentSyncedFields(ctx, [repo]);
  return repo;
}
