import { invalid } from '../../../base/errors.ts';
import type { Uid } from '../../../base/uid.ts';
import type { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { findByName } from '../../../resource/list/find-by-name.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { repos } from './repos.ts';
import { resolveRepo } from './resolve-repo.ts';

/**
 * Finds a repo by its name or by an image reference. Returns undefined when there is none, or when the caller does not
 * hold `capabilities` there. A single name is enough when only one repo within the caller's reach has it. `field` is
 * the request field of `text`, for errors.
 */
export async function findRepoByReference(
  { db, caller }: Pick<ReadContext, 'db' | 'caller'>,
  capabilities: readonly Capability[],
  text: string,
  field: string,
): Promise<Uid | undefined> {
  const path = parsePath(text);
  if (path.length > 1) {
    const { repo } = await resolveRepo(db, path);
    return repo !== undefined && caller.can(capabilities, repo) ? repo : undefined;
  }
  const [found, another] = await findByName(db, repos, caller.reach(capabilities), path[0] ?? '');
  if (another) throw invalid(field, `several repos are named ${text}; use the uid instead`);
  return found;
}

/** The names of `[host/]name/name[:tag][@digest]`, without host, tag and digest. */
function parsePath(reference: string): string[] {
  const [first = '', ...rest] = reference
    .replace(/@.*$/, '')
    .replace(/:[^/]*$/, '')
    .split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost ? rest : [first, ...rest];
}
