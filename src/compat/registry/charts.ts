import { create } from '@bufbuild/protobuf';
import { invalid, notFound } from '../../base/errors.ts';
import type { Uid } from '../../base/uid.ts';
import { CreateGroupRequestSchema, GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { CreateRepoRequestSchema, ReposService } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import * as v1 from '../../contract/gen/platform/registry/v1/charts.platform_pb.js';
import { groupKey, groups } from '../../domains/iam/groups/groups.ts';
import {
  type ChartSources,
  COMMUNITY_CHARTS,
  findChartSources,
  IAMGUARDED_CHARTS,
  type RepoToAdd,
} from '../../domains/registry/charts/chart-sources.ts';
import { findChart } from '../../domains/registry/charts/find-chart.ts';
import type { ReadBlob } from '../../domains/registry/manifests/read-blob.ts';
import { repoKey, repos } from '../../domains/registry/repos/repos.ts';
import { type Operations, readOperation, type WriteContext, writeOperation } from '../../resource/operation.ts';
import { findByKey, findUid } from '../../resource/read.ts';
import { requireWrite } from '../typed-operation.ts';

const { addChart, findChart: findChartMethod } = v1.Charts.method;

const CATALOGS: Partial<Record<v1.ChartCatalog, readonly string[]>> = {
  [v1.ChartCatalog.COMMUNITY]: [COMMUNITY_CHARTS],
  [v1.ChartCatalog.IAMGUARDED]: [IAMGUARDED_CHARTS],
};

const findChartOperation = readOperation(findChartMethod, async (ctx, { catalog, name }) => {
  if (name === '') throw invalid('name', 'is required');
  const repo = await findChart(ctx, name, CATALOGS[catalog]);
  if (!repo) throw notFound('chart', name);
  return create(v1.FindChartResponseSchema, { sourceRepoId: repo.uid, name: repo.message.name });
});

/** The group of a repo: its uid, and its path in the group that a chart is added to. A dry run has no uid of a new group. */
interface Target {
  readonly group: Uid | undefined;
  readonly path: string;
}

/** Runs the v2 operations, so that all rules for groups and repos hold. Only the event of AddChart is emitted. */
function createAdder(operations: Operations) {
  const createGroup = requireWrite(operations, GroupsService.method.createGroup);
  const createRepo = requireWrite(operations, ReposService.method.createRepo);

  async function addGroup(ctx: WriteContext, parent: Uid, name: string, dryRun: boolean): Promise<Target> {
    const path = `${name}/`;
    const existing = await findByKey(ctx.db, groups, groupKey(parent, name));
    if (existing || dryRun) return { group: existing, path };
    const created = await createGroup.run(
      ctx,
      create(CreateGroupRequestSchema, { parent, group: { name } }),
      undefined,
    );
    return { group: await findUid(ctx.db, groups.kind, created.uid), path };
  }

  async function addRepo(ctx: WriteContext, { group, path }: Target, { name, source }: RepoToAdd, dryRun: boolean) {
    const id = group && (await findByKey(ctx.db, repos, repoKey(group, name)));
    if (id) return create(v1.AddChartResultSchema, { name: path + name, created: false, id });
    if (dryRun || !group) return create(v1.AddChartResultSchema, { name: path + name, created: true });
    const repo = { name, ...(source && { syncConfig: { source } }) };
    const { uid } = await createRepo.run(ctx, create(CreateRepoRequestSchema, { parent: group, repo }), undefined);
    return create(v1.AddChartResultSchema, { name: path + name, created: true, id: uid });
  }

  return { addGroup, addRepo };
}

function addChartOperation(operations: Operations, readBlob: ReadBlob): Operations {
  const { addGroup, addRepo } = createAdder(operations);
  return writeOperation<typeof addChart, ChartSources>(addChart, {
    prepare: (ctx, { sourceRepoId, tag }) => findChartSources(ctx, readBlob, sourceRepoId, tag),
    async run(ctx, { parentId, dryRun }, { chart, catalog, images }) {
      const parent = await findUid(ctx.db.forShare, groups.kind, parentId);
      if (!parent) throw notFound(groups.kind, parentId);
      const results = [await addRepo(ctx, await addGroup(ctx, parent, catalog, dryRun), chart, dryRun)];
      for (const image of images) results.push(await addRepo(ctx, { group: parent, path: '' }, image, dryRun));
      if (dryRun || !results.some(({ created }) => created)) ctx.unchanged();
      return create(v1.AddChartResponseSchema, { repos: results });
    },
    event: (_ctx, { parentId }, message) => ({
      subject: message.repos[0]?.id ?? parentId,
      extensions: { group: parentId },
      body: { schema: v1.AddChartResponseSchema, message },
    }),
  });
}

export const chartOperations = (operations: Operations, readBlob: ReadBlob): Operations => ({
  ...findChartOperation,
  ...addChartOperation(operations, readBlob),
});
