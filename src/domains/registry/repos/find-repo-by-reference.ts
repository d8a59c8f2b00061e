import { invalid } from '../../../base/errors.ts';
import type { Uid } from '../../../base/uid.ts';
import type { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { findByValue } from '../../../resource/list/find-by-name.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { hasSourceRepo, repos } from './repos.ts';
import { resolveRepo } from './resolve-repo.ts';

/**
 * Finds a repo by its name or by an image reference. Returns undefined when there is none, or when the caller does not
 * hold `capabilities` there. A single name is enough when only one repo within the caller's reach has it, besides those
 * that are synced from another repo. `field` is the request field of `text`, for errors.
 */
export async function findRepoByReference(
  { db, caller }: Pick<ReadContext, 'db' | 'caller'>,
  capabilities: readonly Capability[],
  text: string,
  field: string,
): Promise<Uid | undefined> {
  const path = parseImagePath(text);
  if (path.length > 1) {
    const { repo } = await resolveRepo(db, path);
    return repo !== undefined && caller.can(capabilities, repo) ? repo : undefined;
  }
  const found = await findReposByName(db, caller.reach(capabilities), path[0] ?? '');
  const [repo, another] = found.length > 1 ? await withoutSynced(db, found) : found;
  if (another) throw invalid(field, `several repos are named ${text}; use the uid instead`);
  return repo ?? found[0];
}

const MAX_CANDIDATES = 100;

/** The uids of repos within reach with this name. Not all, if there are very many. */
export const findReposByName = (db: Reader, reach: readonly Uid[], name: string): Promise<Uid[]> =>
  findByValue(db, repos, reach, { field: 'name', values: [name] }, MAX_CANDIDATES);

const withoutSynced = async (db: Reader, uids: readonly Uid[]): Promise<Uid[]> =>
  (await findAll(db, repos, uids)).filter(({ message }) => !hasSourceRepo(message)).map(({ uid }) => uid);

/** The names of `[host/]name/name[:tag][@digest]`, without host, tag and digest. */
export function parseImagePath(reference: string): string[] {
  const [first = '', ...rest] = reference
    .replace(/@.*$/, '')
    .replace(/:[^/]*$/, '')
    .split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost ? rest : [first, ...rest];
}
