import { create, type Message } from '@bufbuild/protobuf';
import { ReposService } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import {
  type CreateRepoRequest,
  type GetRepoCountBySourceRequest,
  Registry,
  type Repo,
  RepoCountSchema,
  RepoSchema,
} from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { readmesOf, requireReadme, setReadme } from '../../domains/registry/repos/readme.ts';
import { findRepoIn } from '../../domains/registry/repos/repo-operations.ts';
import { countFollowers } from '../../domains/registry/repos/sync-source.ts';
import type { EventFacts, Operation, Operations, ReadContext, WriteContext } from '../../resource/operation.ts';
import { adapt, idOf, type Unary } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { words } from './repo-mapping.ts';

const { createRepo, updateRepo, listRepos, deleteRepo, getRepoCountBySource } = Registry.method;

const fields = { uid: 'id', parent: 'parent_id', expiration_time: 'expiration' };

/** The event tells of the README too, which v2 knows nothing of here. */
const withAnswer = (facts: EventFacts, message: Repo): EventFacts => ({
  ...facts,
  body: { schema: RepoSchema, message },
});

type Write = Extract<Operation, { mode: 'write' }>;

/** With the README that v1 has in the same message. v2 has nothing to prepare for repos. */
function withReadme(adapted: Operations, method: Unary, repoOf: (request: never) => Repo | undefined): Operations {
  const operation = adapted[idOf(method)] as Write;
  const readmeIn = (request: Message): string => repoOf(request as never)?.readme ?? '';
  const wrapped: Write = {
    ...operation,
    prepare: async (_ctx, request) => requireReadme(readmeIn(request), 'readme'),
    async run(ctx, request, prepared) {
      const answer = (await operation.run(ctx, request, prepared)) as Repo;
      answer.readme = readmeIn(request);
      await setReadme(ctx, answer.id, answer.readme);
      return answer;
    },
  };
  return { [idOf(method)]: wrapped };
}

/** Creates a repo; unless that is to be prevented, one that is there already is as good. */
function createOrFind(adapted: Operations): Operations {
  const operation = adapted[idOf(createRepo)] as Write;
  const run: Write['run'] = async (ctx, request, prepared) => {
    const { parentId, repo, preventExisting } = request as CreateRepoRequest;
    const found = preventExisting ? undefined : await findRepoIn(ctx, parentId, repo?.name ?? '');
    if (!found) return operation.run(ctx, request, prepared);
    ctx.unchanged();
    const [answer] = await inV1Words([found], ctx);
    return answer as Repo;
  };
  return { [idOf(createRepo)]: { ...operation, run } };
}

const inV1Words = async (found: Parameters<typeof words.toV1>[0][], { db }: ReadContext | WriteContext) => {
  const readmes = await readmesOf(
    db,
    found.map(({ uid }) => uid),
  );
  return found.map((repo) => Object.assign(words.toV1(repo), { readme: readmes.get(repo.uid) ?? '' }));
};

const countBySource: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { id } = request as GetRepoCountBySourceRequest;
    return create(RepoCountSchema, { count: BigInt(await countFollowers(ctx, id)) });
  },
};

export const repoOperations = (operations: Operations): Operations => ({
  ...createOrFind(
    withReadme(
      adapt(operations, createRepo, ReposService.method.createRepo, {
        request: ({ parentId, repo }) => ({ parent: parentId, repo: words.toV2(repo) }),
        response: words.toV1,
        fields,
        event: withAnswer,
      }),
      createRepo,
      ({ repo }: CreateRepoRequest) => repo,
    ),
  ),
  ...withReadme(
    adapt(operations, updateRepo, ReposService.method.updateRepo, {
      request: (repo) => ({ repo: words.toV2(repo), updateMask: words.replaced }),
      response: words.toV1,
      fields,
      event: withAnswer,
    }),
    updateRepo,
    (repo: Repo) => repo,
  ),
  ...listAll(operations, listRepos, ReposService.method.listRepos, {
    request: ({ uidp, id, name }) => ({ uidp: within(uidp, id), ...(name !== '' && { name }) }),
    response: ({ repos }, ctx) => inV1Words(repos, ctx),
  }),
  ...adapt(operations, deleteRepo, ReposService.method.deleteRepo, { request: ({ id }) => ({ uid: id }), fields }),
  [idOf(getRepoCountBySource)]: countBySource,
});
