import { ancestorsOf, type Uid } from '../../../base/uid.ts';
import { find } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { groups } from '../../iam/groups/groups.ts';
import { repos } from '../repos/repos.ts';

/** A repository that has a blob, and what in it needs the blob. */
export interface AffectedRepository {
  /** The path of the repository, such as `my-org/team/app`. */
  readonly repository: string;
  /** The digests of the manifests that refer to the blob, also through an index. */
  readonly manifests: readonly string[];
  readonly tags: readonly string[];
}

const FIND_REPOS = 'SELECT repo FROM blob_link WHERE digest = $1 ORDER BY repo';
const FIND_MANIFESTS = 'SELECT manifest FROM manifest_link WHERE repo = $1 AND target = $2 ORDER BY manifest';
const FIND_TAGS = 'SELECT name, digest FROM tag_target WHERE repo = $1 ORDER BY name';

/** Finds the images that cannot be pulled without a blob, in the order of their repositories. */
export async function findAffectedImages(db: Reader, digest: string): Promise<AffectedRepository[]> {
  const affected: AffectedRepository[] = [];
  for (const { repo } of await db.all<{ repo: Uid }>(FIND_REPOS, digest)) {
    const manifests = await findManifestsNeeding(db, repo, digest);
    const tags = await db.all<{ name: string; digest: string }>(FIND_TAGS, repo);
    affected.push({
      repository: await repositoryPath(db, repo),
      manifests: [...manifests],
      tags: tags.filter((tag) => manifests.has(tag.digest)).map(({ name }) => name),
    });
  }
  return affected.sort((a, b) => (a.repository < b.repository ? -1 : 1));
}

async function findManifestsNeeding(db: Reader, repo: string, digest: string): Promise<Set<string>> {
  const found = new Set<string>();
  const targets = [digest];
  for (let target = targets.pop(); target !== undefined; target = targets.pop()) {
    for (const { manifest } of await db.all<{ manifest: string }>(FIND_MANIFESTS, repo, target)) {
      if (found.has(manifest)) continue;
      found.add(manifest);
      targets.push(manifest);
    }
  }
  return found;
}

/** The path by which clients name a repo. A part that does not exist any more is shown by its uid. */
async function repositoryPath(db: Reader, repo: Uid): Promise<string> {
  const names: string[] = [];
  for (const uid of [...ancestorsOf(repo), repo]) {
    const stored = (await find(db, groups, uid)) ?? (await find(db, repos, uid));
    names.push(stored?.message.name ?? uid);
  }
  return names.join('/');
}
