import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll, findMessagesByUid } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { groups } from '../../iam/groups/groups.ts';
import { HELM_CONFIG } from '../images/image-config.ts';
import { parseManifest } from '../manifests/manifest.ts';
import { findTagged, type StoredManifest } from '../manifests/manifests.ts';
import { findReposByName } from '../repos/find-repo-by-reference.ts';
import { hasSourceRepo, repos } from '../repos/repos.ts';
import { findLatestVersionTag } from '../tags/latest-version.ts';
import { listTagNames } from '../tags/tag-targets.ts';

const LIST = [Capability.CAP_REPO_LIST];

/**
 * Finds the repo of a chart by its name, among those that the caller may list. With `catalogs`, it must be in a group with
 * one of these names, and otherwise contain a chart. Of several, repos that are synced from another come last.
 */
export async function findChart(
  { db, caller }: ReadContext,
  name: string,
  catalogs: readonly string[] | undefined,
): Promise<Stored<Repo> | undefined> {
  const found = await findAll(db, repos, await findReposByName(db, caller.reach(LIST), name));
  const ordered = found.toSorted((a, b) => Number(hasSourceRepo(a.message)) - Number(hasSourceRepo(b.message)));
  const groupOf = await findMessagesByUid(db, groups, catalogs ? ordered.map(({ parent }) => parent) : []);
  for (const repo of ordered) {
    const isChart = catalogs
      ? catalogs.includes(groupOf.get(repo.parent)?.name ?? '')
      : isChartManifest(await findChartManifest(db, repo.uid));
    if (isChart) return repo;
  }
  return undefined;
}

/** The manifest of a tag. Without one, that of the tag with the highest version, of `latest`, or of any tag. */
export async function findChartManifest(db: Reader, repo: string, tag = ''): Promise<StoredManifest | undefined> {
  if (tag !== '') return findTagged(db, repo, tag);
  const [anyTag = ''] = await listTagNames(db, repo, { limit: 1 });
  const version = await findLatestVersionTag(db, repo);
  if (version !== undefined) return findTagged(db, repo, version);
  return (await findTagged(db, repo, 'latest')) ?? findTagged(db, repo, anyTag);
}

export const isChartManifest = (stored: StoredManifest | undefined): boolean =>
  stored !== undefined && parseManifest(stored.bytes, stored.mediaType).config?.mediaType === HELM_CONFIG;
