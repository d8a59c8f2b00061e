import { clone, create, type Message } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../../base/errors.ts';
import { parentOf } from '../../../base/uid.ts';
import {
  type GetRepoReadmeRequest,
  type Repo,
  type RepoReadme,
  RepoReadmeSchema,
  ReposService,
  type UpdateRepoReadmeRequest,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { Operation, Operations, WriteContext } from '../../../resource/operation.ts';
import { find, findAll } from '../../../resource/read.ts';
import { applyMask } from '../../../resource/update-mask.ts';
import { update } from '../../../resource/write.ts';
import type { Reader } from '../../../store/store.ts';
import { readmeProblem } from './readme-policy.ts';
import { repos } from './repos.ts';

/** A part of the repo, kept in its state so that lists of repos need not carry it. */
const contentOf = ({ state }: Pick<Stored, 'state'>): string => (typeof state?.readme === 'string' ? state.readme : '');

const readmeOf = (repo: Stored): RepoReadme =>
  create(RepoReadmeSchema, {
    uid: repo.uid,
    content: contentOf(repo),
    createTime: timestampFromMs(repo.created),
    updateTime: timestampFromMs(repo.updated),
  });

/** The READMEs of repos, by uid. */
export async function readmesOf(db: Reader, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Map((await findAll(db, repos, uids)).map((repo) => [repo.uid, contentOf(repo)]));
}

/** Rendering is too slow for a transaction, so this comes before it. */
export function requireReadme(content: string, field = 'content'): void {
  const problem = readmeProblem(content);
  if (problem) throw invalid(field, problem);
}

/** Gives a repo a README that was found to be one. */
export async function setReadme(ctx: WriteContext, uid: string, readme: string): Promise<void> {
  const repo = await holdStored(ctx, uid);
  if (contentOf(repo) !== readme) await put(ctx, repo, readme);
}

async function holdStored({ db }: WriteContext, uid: string): Promise<Stored<Repo>> {
  const repo = await find(db.forUpdate, repos, uid);
  if (!repo) throw notFound(repos.kind, uid);
  return repo;
}

const put = ({ db, now }: WriteContext, repo: Stored<Repo>, readme: string): Promise<Stored<Repo>> =>
  update(db, repos, repo, { message: repo.message, state: { ...repo.state, readme } }, now);

const get: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { uid } = request as GetRepoReadmeRequest;
    const repo = await find(db, repos, uid);
    if (!repo) throw notFound(repos.kind, uid);
    return readmeOf(repo);
  },
};

/** Puts what the request changes into `target`, and says whether that is anything. */
function applyTo(target: RepoReadme, request: Message): boolean {
  const { repoReadme, updateMask } = request as UpdateRepoReadmeRequest;
  const source = clone(RepoReadmeSchema, repoReadme ?? create(RepoReadmeSchema));
  return applyMask(RepoReadmeSchema, target, source, updateMask?.paths).size > 0;
}

const change: Operation = {
  mode: 'write',
  async prepare(_ctx, request) {
    const wanted = create(RepoReadmeSchema);
    applyTo(wanted, request);
    requireReadme(wanted.content);
  },
  async run(ctx, request) {
    const { uid = '' } = (request as UpdateRepoReadmeRequest).repoReadme ?? {};
    const repo = await holdStored(ctx, uid);
    const readme = readmeOf(repo);
    if (!applyTo(readme, request)) {
      ctx.unchanged();
      return readme;
    }
    return readmeOf(await put(ctx, repo, readme.content));
  },
  event(_ctx, _request, response) {
    const { uid } = response as RepoReadme;
    return {
      subject: uid,
      extensions: { group: parentOf(uid) },
      body: { schema: RepoReadmeSchema, message: response },
    };
  },
};

export const readmeOperations: Operations = {
  [`${ReposService.typeName}/${ReposService.method.getRepoReadme.name}`]: get,
  [`${ReposService.typeName}/${ReposService.method.updateRepoReadme.name}`]: change,
};
