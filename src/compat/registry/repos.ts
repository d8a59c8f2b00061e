import { create } from '@bufbuild/protobuf';
import {
  type RepoReadme,
  ReposService,
  type Repo as V2Repo,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import {
  type CreateRepoRequest,
  Registry,
  type Repo,
  RepoCountSchema,
} from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { findReadmes, requireValidReadme, setReadme } from '../../domains/registry/repos/readme.ts';
import { findRepoByName } from '../../domains/registry/repos/repo-operations.ts';
import type { SyncSettingsContext } from '../../domains/registry/repos/sync-settings.ts';
import { countSyncedRepos } from '../../domains/registry/repos/sync-source.ts';
import {
  type EventFacts,
  type Operations,
  type ReadContext,
  readOperation,
  type WriteContext,
  type WriteHandlers,
  writeOperation,
} from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { convertEventBodies, createEventBodyConverter } from '../event-body.ts';
import { requireWrite } from '../typed-operation.ts';
import { repoMapper } from './repo-mapping.ts';

const { createRepo, updateRepo, listRepos, deleteRepo, getRepoCountBySource } = Registry.method;

const v1FieldNames = { uid: 'id', parent: 'parent_id', expiration_time: 'expiration' };

/** v2 events have no README, so it is added to the body of the v1 event. */
const withReadmeInBody = (facts: EventFacts, { readme }: Repo): EventFacts => ({
  ...facts,
  ...(facts.body && { body: { ...facts.body, message: Object.assign(facts.body.message, { readme }) } }),
});

/** Also writes the README, which v1 has in the repo message. The v2 methods for repos have no `prepare`. */
function withReadme<Request>(
  handlers: WriteHandlers<Request, Repo, unknown>,
  repoIn: (request: Request) => Repo | undefined,
): WriteHandlers<Request, Repo, unknown> {
  const readmeIn = (request: Request): string => repoIn(request)?.readme ?? '';
  return {
    ...handlers,
    prepare: async (_ctx, request) => requireValidReadme(readmeIn(request), 'readme'),
    async run(ctx, request, prepared) {
      const response = await handlers.run(ctx, request, prepared);
      response.readme = readmeIn(request);
      await setReadme(ctx, response.id, response.readme);
      return response;
    },
  };
}

/** Also sets the fields of `sync_config` that v2 only shows. */
const withSyncSettings = <Request>(
  handlers: WriteHandlers<Request, Repo, unknown>,
  repoIn: (request: Request) => Repo | undefined,
): WriteHandlers<Request, Repo, unknown> => ({
  ...handlers,
  run(ctx, request, prepared) {
    const settings: SyncSettingsContext = { ...ctx, syncSettings: repoMapper.toV2(repoIn(request))?.syncConfig };
    return handlers.run(settings, request, prepared);
  },
});

/** Returns the repo of that name if it exists, unless the request has `prevent_existing`. */
const createOrFind = (
  handlers: WriteHandlers<CreateRepoRequest, Repo, unknown>,
): WriteHandlers<CreateRepoRequest, Repo, unknown> => ({
  ...handlers,
  async run(ctx, request, prepared) {
    const { parentId, repo, preventExisting } = request;
    const existing = preventExisting ? undefined : await findRepoByName(ctx, parentId, repo?.name ?? '');
    const [found] = existing ? await toV1Repos([existing], ctx) : [];
    if (!found) return handlers.run(ctx, request, prepared);
    ctx.unchanged();
    return found;
  },
});

const toV1Repos = async (repos: readonly V2Repo[], { db }: ReadContext | WriteContext) => {
  const readmes = await findReadmes(
    db,
    repos.map(({ uid }) => uid),
  );
  return repos.map((repo) => Object.assign(repoMapper.toV1(repo), { readme: readmes.get(repo.uid) ?? '' }));
};

const adaptCreate = (operations: Operations): Operations =>
  adapt(operations, createRepo, ReposService.method.createRepo, {
    request: ({ parentId, repo }) => ({ parent: parentId, repo: repoMapper.toV2(repo) }),
    response: repoMapper.toV1,
    v1FieldNames,
    event: withReadmeInBody,
  });

const adaptUpdate = (operations: Operations): Operations =>
  adapt(operations, updateRepo, ReposService.method.updateRepo, {
    request: (repo) => ({ repo: repoMapper.toV2(repo), updateMask: repoMapper.fullUpdateMask }),
    response: repoMapper.toV1,
    v1FieldNames,
    event: withReadmeInBody,
  });

const repoInCreate = ({ repo }: CreateRepoRequest): Repo | undefined => repo;
const repoInUpdate = (repo: Repo): Repo => repo;
/** A new README is an update of the repo, whose message in v1 has the README. */
const convertReadmeEvent = createEventBodyConverter<RepoReadme>(
  updateRepo,
  ReposService.method.updateRepo,
  (repo, { content }) => Object.assign(repoMapper.toV1(repo as V2Repo), { readme: content }),
);

export const repoOperations = (operations: Operations): Operations => ({
  ...adaptCreate(operations),
  ...adaptUpdate(operations),
  ...convertEventBodies(operations, ReposService.method.updateRepoReadme, convertReadmeEvent),
  ...writeOperation(
    createRepo,
    createOrFind(
      withReadme(withSyncSettings(requireWrite(adaptCreate(operations), createRepo), repoInCreate), repoInCreate),
    ),
  ),
  ...writeOperation(
    updateRepo,
    withReadme(withSyncSettings(requireWrite(adaptUpdate(operations), updateRepo), repoInUpdate), repoInUpdate),
  ),
  ...adaptList(operations, listRepos, ReposService.method.listRepos, {
    request: ({ uidp, id, name }) => ({ uidp: uidpFilterOf(uidp, id), ...(name !== '' && { name }) }),
    response: ({ repos }, ctx) => toV1Repos(repos, ctx),
  }),
  ...adapt(operations, deleteRepo, ReposService.method.deleteRepo, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...readOperation(getRepoCountBySource, async (ctx, { id }) =>
    create(RepoCountSchema, { count: BigInt(await countSyncedRepos(ctx, id)) }),
  ),
});
