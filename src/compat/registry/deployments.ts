import { create } from '@bufbuild/protobuf';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { getDeployment, putDeployment } from '../../domains/registry/repos/deployments.ts';
import { getSettings, putSettings } from '../../domains/registry/repos/settings.ts';
import type { Operation, Operations } from '../../resource/operation.ts';
import { idOf } from '../adapt.ts';

const { method } = v1.Registry;

/** There is one for a repo, so that it goes by the uid of the repo. */
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

const createDeployment: Operation = {
  mode: 'write',
  async run(ctx, request) {
    const { parentId, charts } = request as v1.CreateDeploymentRequest;
    await putDeployment(ctx, parentId, charts, 'first');
    return deploymentOf(parentId, charts);
  },
};

const updateDeployment: Operation = {
  mode: 'write',
  async run(ctx, request) {
    const { repoId, charts } = request as v1.UpdateDeploymentRequest;
    await putDeployment(ctx, repoId, charts, 'next');
    return deploymentOf(repoId, charts);
  },
};

const readDeployment: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { repoId } = request as v1.GetDeploymentRequest;
    return deploymentOf(repoId, await getDeployment(ctx, repoId));
  },
};

const readSettings: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { registryId } = request as v1.GetRegistrySettingsRequest;
    return create(v1.RegistrySettingsSchema, { registryId, ...(await getSettings(ctx, registryId)) });
  },
};

const updateSettings: Operation = {
  mode: 'write',
  async run(ctx, request) {
    const { registryId, uniqueTags, eolGracePeriod } = request as v1.RegistrySettings;
    await putSettings(ctx, registryId, { uniqueTags, eolGracePeriod });
    return create(v1.RegistrySettingsSchema, { registryId, uniqueTags, eolGracePeriod });
  },
};

export const deploymentOperations: Operations = {
  [idOf(method.createDeployment)]: createDeployment,
  [idOf(method.updateDeployment)]: updateDeployment,
  [idOf(method.getDeployment)]: readDeployment,
  [idOf(method.getRegistrySettings)]: readSettings,
  [idOf(method.updateRegistrySettings)]: updateSettings,
};
