import { create } from '@bufbuild/protobuf';
import { ApiError, Code } from '../../base/errors.ts';
import { parseUid, type Uid } from '../../base/uid.ts';
import { CreateRepoRequestSchema, ReposService } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import type { RunNested } from '../../pipeline/nested.ts';
import {
  recordingEvents,
  runInTransaction,
  type TransactionContext,
  type WithEvents,
} from '../../pipeline/run-write.ts';
import type { Store } from '../../store/store.ts';
import type { PushTarget, RepositoryAccess } from '../auth/repository-access.ts';
import type { OciCall } from '../http/call.ts';

export interface WriteToRepoOptions {
  readonly store: Store;
  readonly access: RepositoryAccess;
  readonly runNested: RunNested;
}

/** Runs `work` in a transaction on the repo of a push target, and records its events. Creates the repo if it is missing. */
export type WriteToRepo = <T>(
  call: OciCall,
  target: PushTarget,
  work: (ctx: TransactionContext, repo: Uid) => Promise<WithEvents<T>>,
) => Promise<T>;

/** A repo that a push creates is created by the operation of CreateRepo: with its rules and its event. */
export function createWriteToRepo({ store, access, runNested }: WriteToRepoOptions): WriteToRepo {
  async function createRepo(ctx: TransactionContext, { group, repoName }: PushTarget): Promise<Uid> {
    const request = create(CreateRepoRequestSchema, { parent: group, repo: { name: repoName } });
    const { uid } = await runNested(ctx, ReposService.method.createRepo, request);
    return parseUid('uid', uid);
  }

  return async (call, target, work) => {
    const attempt = () =>
      runInTransaction(
        store,
        call,
        recordingEvents(async (ctx) => {
          const repo = target.repo ?? (await resolveRepo(ctx.db, target.name.split('/'))).repo;
          return work(ctx, repo ?? (await createRepo(ctx, target)));
        }),
        { authorize: (ctx) => access.requirePushTarget({ ...call, ...ctx }, target.name, target.capabilities) },
      );
    try {
      return await attempt();
    } catch (error) {
      // A concurrent push has created the repo, so the second attempt finds it.
      if (!(error instanceof ApiError) || error.code !== Code.ALREADY_EXISTS) throw error;
      return attempt();
    }
  };
}
