import { clone, create, type Message } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import { parentOf } from '../../base/uid.ts';
import {
  type GetRepoReadmeRequest,
  type RepoReadme,
  RepoReadmeSchema,
  ReposService,
  type UpdateRepoReadmeRequest,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Operation, Operations } from '../../resource/context.ts';
import type { Stored } from '../../resource/definition.ts';
import { applyMask } from '../../resource/mask.ts';
import { find } from '../../resource/read.ts';
import { update } from '../../resource/write.ts';
import { readmeProblem } from './readme-policy.ts';
import { repos } from './repos.ts';

/** A part of the repo, kept in its state so that lists of repos need not carry it. */
const readmeOf = ({ uid, created, updated, state }: Stored): RepoReadme =>
  create(RepoReadmeSchema, {
    uid,
    content: typeof state?.readme === 'string' ? state.readme : '',
    createTime: timestampFromMs(created),
    updateTime: timestampFromMs(updated),
  });

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
  /** Rendering is too slow for a transaction. */
  async prepare(_ctx, request) {
    const wanted = create(RepoReadmeSchema);
    applyTo(wanted, request);
    const problem = readmeProblem(wanted.content);
    if (problem) throw invalid('content', problem);
  },
  async run(ctx, request) {
    const { db, now } = ctx;
    const { uid = '' } = (request as UpdateRepoReadmeRequest).repoReadme ?? {};
    const repo = await find(db, repos, uid, db.lock.update);
    if (!repo) throw notFound(repos.kind, uid);
    const readme = readmeOf(repo);
    if (!applyTo(readme, request)) {
      ctx.unchanged();
      return readme;
    }
    const { message } = repo;
    return readmeOf(await update(db, repos, repo, { message, state: { ...repo.state, readme: readme.content } }, now));
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
