import type { Uid } from '../../base/uid.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import { missingCapabilities, requireCapabilities } from '../../resource/require-capabilities.ts';
import type { OciCall } from '../http/call.ts';
import { segmentsOf } from '../names.ts';
import { type Challenges, scopeFor } from './challenge.ts';
import type { Action } from './scope.ts';

/** The repository that a push goes to. It need not exist. */
export interface PushTarget {
  readonly name: string;
  /** The uid of the repo; undefined when it must be created. */
  readonly repo: Uid | undefined;
  readonly group: Uid;
  /** The name of the repo within its group. */
  readonly repoName: string;
  /** The caller must hold one of these at the repo, or at the group if the repo must be created. */
  readonly capabilities: readonly Capability[];
}

/**
 * Authorizes calls that name a repository. The capabilities are those that the contract declares for the method of the
 * call. A repository that the caller may not access gets the same answer as one that does not exist.
 */
export interface RepositoryAccess {
  /** Returns the uid of the repo. */
  require(call: OciCall, name: string, action: Action): Promise<Uid>;
  /** Returns undefined for a repo that does not exist, if the caller holds the capabilities at its group. */
  find(call: OciCall, name: string, action: Action): Promise<Uid | undefined>;
  /** Accepts a caller who holds one of `capabilities` and, if the repo must be created, may create it. */
  requirePushTarget(call: OciCall, name: string, capabilities: readonly Capability[]): Promise<PushTarget>;
}

export function createRepositoryAccess(challenges: Challenges): RepositoryAccess {
  function requireTokenScope(call: OciCall, name: string, action: Action): void {
    if (!call.tokenAllows(name, action)) throw challenges.insufficient(call.req, scopeFor(name, action));
  }

  const find: RepositoryAccess['find'] = async (call, name, action) => {
    const segments = segmentsOf(name);
    requireTokenScope(call, name, action);
    const { capabilities } = call.method;
    const { repo, group } = await resolveRepo(call.db, segments);
    const at = repo ?? group;
    if (at === undefined) throw missingCapabilities(capabilities, name);
    requireCapabilities(capabilities, call.caller, at, name);
    return repo;
  };

  return {
    find,

    async require(call, name, action) {
      const repo = await find(call, name, action);
      if (repo === undefined) throw new RegistryError('NAME_UNKNOWN', `there is no repository ${name}`);
      return repo;
    },

    async requirePushTarget(call, name, capabilities) {
      const segments = segmentsOf(name);
      requireTokenScope(call, name, 'push');
      const { caller } = call;
      const { repo, group, missing } = await resolveRepo(call.db, segments);
      const at = repo ?? group;
      const isAllowed = at !== undefined && capabilities.some((capability) => caller.can([capability], at));
      if (group === undefined || !isAllowed) throw missingCapabilities(capabilities, name);
      if (missing !== 'nothing') requireCapabilities(CREATE_REPO, caller, group, name);
      if (missing === 'group') {
        throw new RegistryError('NAME_UNKNOWN', `the group of ${name} does not exist; create it first`);
      }
      return { name, repo, group, repoName: segments.at(-1) ?? '', capabilities };
    },
  };
}

const CREATE_REPO = [Capability.CAP_REPO_CREATE];
