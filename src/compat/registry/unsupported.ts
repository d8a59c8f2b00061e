import { create, type DescMessage } from '@bufbuild/protobuf';
import { notFound } from '../../base/errors.ts';
import * as v1 from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import type { Operation, Operations } from '../../resource/operation.ts';
import { idOf } from '../adapt.ts';

/*
 * This server neither builds images nor copies them from elsewhere, nor does it know the versions of packages. What is
 * asked about that has an honest answer: there is none.
 */

const { method } = v1.Registry;

const nothing = (schema: DescMessage): Operation => ({ mode: 'read', run: () => create(schema) });

/** Of a repo that is there. */
const syncStatus: Operation = {
  mode: 'read',
  async run({ db }, request) {
    await requireRepo(db, (request as v1.GetSyncStatusRequest).repoId);
    return create(v1.SyncStatusSchema);
  },
};

const missing = (kind: string, nameOf: (request: never) => string): Operation => ({
  mode: 'read',
  run: (_ctx, request) => Promise.reject(notFound(kind, nameOf(request as never))),
});

export const elsewhereOperations: Operations = {
  [idOf(method.getHelm)]: missing('helm chart', ({ digest }: v1.HelmRequest) => digest),
  [idOf(method.getPackageVersionMetadata)]: missing(
    'package',
    ({ package: name }: v1.PackageVersionMetadataRequest) => name,
  ),
  [idOf(method.listChartsByImageRepo)]: nothing(v1.ListChartsByImageRepoResponseSchema),
  [idOf(method.getSyncStatus)]: syncStatus,
  [idOf(method.listSyncStatuses)]: nothing(v1.SyncStatusListSchema),
  [idOf(method.listBuildReports)]: nothing(v1.BuildReportListSchema),
  [idOf(method.getBuildStatus)]: nothing(v1.BuildStatusSchema),
};
