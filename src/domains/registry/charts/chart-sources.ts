import { invalid, notFound, precondition } from '../../../base/errors.ts';
import { isUid, type Uid } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { readChartImages } from '../../../formats/charts/chart-images.ts';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { groups } from '../../iam/groups/groups.ts';
import { requireChart } from '../images/image-config.ts';
import type { ReadBlob } from '../manifests/read-blob.ts';
import { parseImagePath } from '../repos/find-repo-by-reference.ts';
import { repoNameRule } from '../repos/name-rules.ts';
import { hasSourceRepo, repos } from '../repos/repos.ts';
import { resolveRepo } from '../repos/resolve-repo.ts';
import { findChartManifest, isChartManifest } from './find-chart.ts';

/** The names of groups with charts, which are the catalogs of v1. */
export const COMMUNITY_CHARTS = 'charts';
export const IAMGUARDED_CHARTS = 'iamguarded-charts';

const LIST = [Capability.CAP_REPO_LIST];
const READ = [Capability.CAP_REPO_LIST, Capability.CAP_MANIFEST_LIST];

/** A repo that adding a chart creates: its name, and the repo that it is synced from. */
export interface RepoToAdd {
  readonly name: string;
  /** Absent if the image is not in this registry, or if the caller may not list it. */
  readonly source?: Uid | undefined;
}

/** A chart and its images. */
export interface ChartSources {
  readonly chart: RepoToAdd;
  /** The name of the group for the repo of the chart: a chart and one of its images often have the same name. */
  readonly catalog: string;
  readonly images: readonly RepoToAdd[];
}

/** Finds the chart in a repo that the caller can read, and the images that it names. */
export async function findChartSources(
  ctx: ReadContext,
  readBlob: ReadBlob,
  sourceUid: string,
  tag: string,
): Promise<ChartSources> {
  const { db } = ctx;
  const repo = await requireSource(ctx, sourceUid);
  const group = await find(db, groups, repo.parent);
  const catalog = group?.message.name === IAMGUARDED_CHARTS ? IAMGUARDED_CHARTS : COMMUNITY_CHARTS;
  const chart = { name: repo.message.name, source: repo.uid };
  const manifest = await findChartManifest(db, repo.uid, tag);
  if (!manifest && tag !== '') throw notFound('tag', tag);
  if (!manifest) return { chart, catalog, images: [] };
  if (!isChartManifest(manifest)) {
    throw precondition('NOT_A_CHART', repo.uid, `${repo.message.name} contains images; use a repo with a Helm chart`);
  }
  const named = await readChartImages(await requireChart({ db, readBlob }, repo.uid, manifest.digest));
  const images = new Map<string, RepoToAdd>();
  for (const { image } of named) {
    const path = parseImagePath(image);
    const name = path.at(-1) ?? '';
    if (!repoNameRule(name) && !images.has(name)) images.set(name, { name, source: await findImage(ctx, path) });
  }
  return { chart, catalog, images: [...images.values()] };
}

/** The repo with the chart. For one that is synced from another, the other one. */
async function requireSource({ db, caller }: ReadContext, text: string): Promise<Stored<Repo>> {
  const findReadable = async (uid: string) => (isUid(uid) && caller.can(READ, uid) ? find(db, repos, uid) : undefined);
  const named = await findReadable(text);
  const repo =
    named && hasSourceRepo(named.message) ? await findReadable(named.message.syncConfig?.source ?? '') : named;
  if (!repo) throw invalid('source_repo_id', `there is no repo ${text}, or you may not read it`);
  return repo;
}

/** The repo of this registry that an image reference names, or the one that it is synced from. */
async function findImage({ db, caller }: ReadContext, path: readonly string[]): Promise<Uid | undefined> {
  const { repo: uid } = path.length > 1 ? await resolveRepo(db, path) : {};
  const repo = uid && caller.can(LIST, uid) ? await find(db, repos, uid) : undefined;
  if (!repo) return undefined;
  const source = repo.message.syncConfig?.source ?? '';
  if (!isUid(source)) return repo.uid;
  return caller.can(LIST, source) ? source : undefined;
}
