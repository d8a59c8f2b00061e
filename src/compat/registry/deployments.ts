import { create } from '@bufbuild/protobuf';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { getDeployment, putDeployment } from '../../domains/registry/repos/deployments.ts';
import { type Operations, readOperation, writeOperation } from '../../resource/operation.ts';

const { method } = v1.Registry;

/** A repo has at most one deployment, so the uid of the repo identifies it. */
const deploymentOf = (
  id: string,
  charts: readonly { repo: string; chart?: string | undefined; source?: string | undefined }[],
) =>
  create(v1.DeploymentSchema, {
    id,
    charts: charts.map(({ repo, chart, source }) => ({
      repo,
      ...(chart !== undefined && { chart }),
      ...(source !== undefined && { source }),
    })),
  });

export const deploymentOperations: Operations = {
  ...writeOperation(method.createDeployment, {
    async run(ctx, { parentId, charts }) {
      await putDeployment(ctx, parentId, charts, 'create');
      return deploymentOf(parentId, charts);
    },
  }),
  ...writeOperation(method.updateDeployment, {
    async run(ctx, { repoId, charts }) {
      await putDeployment(ctx, repoId, charts, 'update');
      return deploymentOf(repoId, charts);
    },
  }),
  ...readOperation(method.getDeployment, async (ctx, { repoId }) =>
    deploymentOf(repoId, await getDeployment(ctx, repoId)),
  ),
};
