import { create, type DescMethodUnary } from '@bufbuild/protobuf';
import { notFound } from '../../base/errors.ts';
import { Registry, SyncStatusSchema } from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import type { RequestOf } from '../typed-operation.ts';

/*
 * This server does not build images, does not copy them from other registries and does not store package versions. The
 * methods about these subjects return an empty response or NOT_FOUND.
 */

const { method } = Registry;

const emptyResponse = <M extends DescMethodUnary>(method: M): Operations =>
  readOperation(method, () => create<M['output']>(method.output));

const alwaysNotFound = <M extends DescMethodUnary>(
  method: M,
  kind: string,
  nameOf: (request: RequestOf<M>) => string,
): Operations => readOperation(method, (_ctx, request) => Promise.reject(notFound(kind, nameOf(request))));

export const unsupportedOperations: Operations = {
  ...alwaysNotFound(method.getHelm, 'helm chart', ({ digest }) => digest),
  ...alwaysNotFound(method.getPackageVersionMetadata, 'package', ({ package: name }) => name),
  ...emptyResponse(method.listChartsByImageRepo),
  ...readOperation(method.getSyncStatus, async ({ db }, { repoId }) => {
    await requireRepo(db, repoId);
    return create(SyncStatusSchema);
  }),
  ...emptyResponse(method.listSyncStatuses),
  ...emptyResponse(method.listBuildReports),
  ...emptyResponse(method.getBuildStatus),
};
