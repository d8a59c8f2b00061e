import { invalid, precondition } from '../../base/errors.ts';
import { Apko } from '../../contract/gen/platform/registry/v1/apko.platform_pb.js';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import type { RequestOf } from '../typed-operation.ts';

/** Refuses to build, after it has checked that the request has a config and names a repo. */
const refuseBuild = <M extends typeof Apko.method.resolveConfig | typeof Apko.method.buildImage>(
  method: M,
): Operations =>
  readOperation(method, async ({ db }, { repoUidp, config }: RequestOf<M>) => {
    await requireRepo(db, repoUidp);
    if (!config) throw invalid('config', 'is required');
    throw precondition(
      'NO_IMAGE_BUILDER',
      repoUidp,
      'this server does not build images; build the image with apko, and push it to the repo',
    );
  });

export const apkoOperations: Operations = {
  ...refuseBuild(Apko.method.resolveConfig),
  ...refuseBuild(Apko.method.buildImage),
};
