import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createBackgroundThread, TaskLimitError } from '../../../base/background-thread.ts';
import { invalid, notFound } from '../../../base/errors.ts';
import { parentOf } from '../../../base/uid.ts';
import {
  type Repo,
  type RepoReadme,
  RepoReadmeSchema,
  RepoSchema,
  ReposService,
  type UpdateRepoReadmeRequest,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import { type Operations, readOperation, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find, findAll } from '../../../resource/read.ts';
import { applyMask } from '../../../resource/update-mask.ts';
import { update } from '../../../resource/write.ts';
import type { Reader } from '../../../store/store.ts';
import { MAX_README } from './readme-size.ts';
import { hasSourceRepo, repos } from './repos.ts';
import { withoutSyncedFields } from './sync-source.ts';

const { getRepoReadme, updateRepoReadme } = ReposService.method;

/** The README is in the private state of the repo, so that lists of repos do not contain it. */
const contentOf = ({ state }: Pick<Stored<Repo>, 'state'>): string =>
  typeof state?.readme === 'string' ? state.readme : '';

const readmeOf = (repo: Stored<Repo>): RepoReadme =>
  create(RepoReadmeSchema, {
    uid: repo.uid,
    content: contentOf(repo),
    createTime: timestampFromMs(repo.created),
    updateTime: timestampFromMs(repo.updated),
  });

/** The READMEs of repos, by the uid of the repo. */
export async function findReadmes(db: Reader, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Map((await findAll(db, repos, uids)).map((repo) => [repo.uid, contentOf(repo)]));
}

// Rendering 128 KiB of Markdown can take a second: the renderer needs quadratic time for some texts.
const thread = createBackgroundThread<string, string | undefined>(new URL('./readme-policy.task.ts', import.meta.url), {
  taskMs: 10_000,
});

/** Refuses a README that breaks the policy. It renders the text, in a background thread. */
export async function requireValidReadme(content: string, field = 'content'): Promise<void> {
  if (content === '') return;
  if (content.length > MAX_README) throw invalid(field, `must be at most ${MAX_README} characters`);
  const problem = await thread.run(content).catch((error) => {
    if (error instanceof TaskLimitError) return 'takes too long to render; shorten or simplify it';
    throw error;
  });
  if (problem) throw invalid(field, problem);
}

/** Sets the README of a repo. The caller has validated it with requireValidReadme. */
export async function setReadme(ctx: WriteContext, uid: string, readme: string): Promise<void> {
  const repo = await findRepoForUpdate(ctx, uid);
  if (contentOf(repo) !== readme) await storeReadme(ctx, repo, readme);
}

async function findRepoForUpdate({ db }: WriteContext, uid: string): Promise<Stored<Repo>> {
  const repo = await find(db.forUpdate, repos, uid);
  if (!repo) throw notFound(repos.kind, uid);
  return repo;
}

const storeReadme = ({ db, now }: WriteContext, repo: Stored<Repo>, readme: string): Promise<Stored<Repo>> =>
  update(db, repos, repo, { message: repo.message, state: { ...repo.state, readme } }, now);

/** Applies the update of a request to `target`. Returns whether the request names any field to update. */
function applyUpdate(target: RepoReadme, { repoReadme, updateMask }: UpdateRepoReadmeRequest): boolean {
  const source = clone(RepoReadmeSchema, repoReadme ?? create(RepoReadmeSchema));
  return applyMask(RepoReadmeSchema, target, source, updateMask?.paths).size > 0;
}

/** The repos of the responses of UpdateRepoReadme, for their events: a new README is an update of the repo. */
const updatedRepos = new WeakMap<RepoReadme, Repo>();

export const readmeOperations: Operations = {
  ...readOperation(getRepoReadme, async ({ db }, { uid }) => {
    const repo = await find(db, repos, uid);
    if (!repo) throw notFound(repos.kind, uid);
    return readmeOf(repo);
  }),
  ...writeOperation(updateRepoReadme, {
    async prepare(_ctx, request) {
      const updated = create(RepoReadmeSchema);
      applyUpdate(updated, request);
      await requireValidReadme(updated.content);
    },
    async run(ctx, request) {
      const repo = await findRepoForUpdate(ctx, request.repoReadme?.uid ?? '');
      const readme = readmeOf(repo);
      if (!applyUpdate(readme, request)) {
        ctx.unchanged();
        return readme;
      }
      const updated = await storeReadme(ctx, repo, readme.content);
      const response = readmeOf(updated);
      updatedRepos.set(
        response,
        hasSourceRepo(updated.message) ? withoutSyncedFields(updated.message) : updated.message,
      );
      return response;
    },
    event: (_ctx, _request, readme) => ({
      subject: readme.uid,
      extensions: { group: parentOf(readme.uid) },
      body: { schema: RepoSchema, message: updatedRepos.get(readme) ?? create(RepoSchema, { uid: readme.uid }) },
    }),
  }),
};
