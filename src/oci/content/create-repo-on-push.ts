import { create } from '@bufbuild/protobuf';
import { ApiError, Code } from '../../base/errors.ts';
import {
  CreateRepoRequestSchema,
  type Repo,
  ReposService,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Method } from '../../contract/method.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import { recordEvent } from '../../pipeline/event.ts';
import type { Operations, WriteContext } from '../../resource/operation.ts';
import type { Store, Transaction } from '../../store/store.ts';
import type { Target } from '../auth/permission.ts';
import type { Call } from '../http/call.ts';

export interface RepoMakerOptions {
  readonly store: Store;
  readonly methods: readonly Method[];
  readonly operations: Operations;
}

/** Runs `work` in a transaction, on the repo of a target, which is made first where it is missing. */
export type InRepo = <T>(call: Call, target: Target, work: (tx: Transaction, repo: string) => Promise<T>) => Promise<T>;

const CREATE_REPO = `${ReposService.typeName}/${ReposService.method.createRepo.name}`;

/** A repo that a push makes is made as by the API: with the same rules, and the same event. */
export function createRepoMaker({ store, methods, operations }: RepoMakerOptions): InRepo {
  const method = methods.find(({ id }) => id === CREATE_REPO);
  const operation = operations[CREATE_REPO];
  if (!method?.event || operation?.mode !== 'write') throw new Error(`${CREATE_REPO} is missing`);
  const { event } = method;
  const { run, event: factsOf } = operation;

  const make = async (db: Transaction, call: Call, { group, leaf }: Target): Promise<string> => {
    const { credential, now } = call;
    const request = create(CreateRepoRequestSchema, { parent: group, repo: { name: leaf } });
    const { caller } = credential;
    const ctx: WriteContext = { method, caller, authorization: undefined, now, db, unchanged() {}, setHeader() {} };
    const repo = (await run(ctx, request, undefined)) as Repo;
    await recordEvent(ctx, event, factsOf?.(ctx, request, repo));
    return repo.uid;
  };

  return async (call, target, work) => {
    const attempt = () =>
      store.write(async (tx) => {
        const found = target.repo ?? (await resolveRepo(tx, target.name.split('/'))).repo;
        return work(tx, found ?? (await make(tx, call, target)));
      });
    try {
      return await attempt();
    } catch (error) {
      // Somebody else made it at the same moment, so by now it is there.
      if (!(error instanceof ApiError) || error.code !== Code.ALREADY_EXISTS) throw error;
      return attempt();
    }
  };
}
