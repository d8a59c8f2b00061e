import { invalid } from '../../../base/errors.ts';
import type { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { findByName } from '../../../resource/list/find-by-name.ts';
import type { ReadContext } from '../../../resource/operation.ts';
import { repos } from './repos.ts';
import { resolveRepo } from './resolve-repo.ts';

/**
 * The uid of the repo that a name or an image reference means, if the caller holds `capabilities` there. A name alone
 * is enough where only one repo within reach has it; `field` is where it was given.
 */
export async function findRepoNamed(
  { db, caller }: Pick<ReadContext, 'db' | 'caller'>,
  capabilities: readonly Capability[],
  text: string,
  field: string,
): Promise<string | undefined> {
  const path = pathIn(text);
  if (path.length > 1) {
    const { repo } = await resolveRepo(db, path);
    return repo !== undefined && caller.can(capabilities, repo) ? repo : undefined;
  }
  const [found, another] = await findByName(db, repos, caller.reach(capabilities), path[0] ?? '');
  if (another) throw invalid(field, `several repos are named ${text}; give the uid instead`);
  return found;
}

/** The names in `[host/]name/name[:tag][@digest]`. */
function pathIn(reference: string): string[] {
  const [first = '', ...rest] = reference
    .replace(/@.*$/, '')
    .replace(/:[^/]*$/, '')
    .split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost ? rest : [first, ...rest];
}
