import { nameOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import type { Reader } from '../../store/store.ts';
import type { Call } from '../http/call.ts';
import { segmentsOf } from '../names.ts';
import { type Challenges, scopeFor } from './challenge.ts';
import type { Action } from './scope.ts';

/** Where a push goes: to a repo that is there, or to one to be made in a group. */
export interface Target {
  readonly name: string;
  readonly repo: string | undefined;
  readonly group: string;
  /** What the repo is called in its group. */
  readonly leaf: string;
}

export interface Permission {
  /** The uid of the repo, if the caller may do this there. */
  require(call: Call, name: string, action: Action, capabilities: readonly Capability[]): Promise<string>;
  /** The same for a repo that need not be there; undefined then, if the caller may do this where it would be. */
  allow(call: Call, name: string, action: Action, capabilities: readonly Capability[]): Promise<string | undefined>;
  /** A repo that the caller may push to with any one of `capabilities`, or may make for that. */
  requireTarget(call: Call, name: string, capabilities: readonly Capability[]): Promise<Target>;
}

export interface PermissionOptions {
  readonly db: Reader;
  readonly challenges: Challenges;
}

/** Decides who may do what with a repo. One out of reach looks exactly like one that does not exist. */
export function createPermission({ db, challenges }: PermissionOptions): Permission {
  function requireMeant({ credential }: Call, name: string, action: Action): void {
    if (!credential.isMeantFor(name, action)) throw challenges.insufficient(scopeFor(name, action));
  }

  const allow: Permission['allow'] = async (call, name, action, capabilities) => {
    const segments = segmentsOf(name);
    requireMeant(call, name, action);
    const { repo, group } = await resolveRepo(db, segments);
    const at = repo ?? group;
    if (at === undefined || !call.credential.caller.can(capabilities, at)) throw denied(name, capabilities);
    return repo;
  };

  return {
    allow,

    async require(call, name, action, capabilities) {
      const repo = await allow(call, name, action, capabilities);
      if (repo === undefined) throw unknown(name);
      return repo;
    },

    async requireTarget(call, name, capabilities) {
      const segments = segmentsOf(name);
      requireMeant(call, name, 'push');
      const { caller } = call.credential;
      const { repo, group, missing } = await resolveRepo(db, segments);
      const at = repo ?? group;
      const may = at !== undefined && capabilities.some((capability) => caller.can([capability], at));
      if (group === undefined || !may) throw denied(name, capabilities);
      if (missing !== 'nothing' && !caller.can(MAKE, group)) throw denied(name, MAKE);
      if (missing === 'group')
        throw new RegistryError('NAME_UNKNOWN', `the group of ${name} does not exist; create it first`);
      return { name, repo, group, leaf: segments.at(-1) ?? '' };
    },
  };
}

const MAKE = [Capability.CAP_REPO_CREATE];

export const denied = (name: string, capabilities: readonly Capability[]): RegistryError => {
  const names = capabilities.map(nameOf).join(', ');
  return new RegistryError('DENIED', `needs ${names} on ${name}; ask an owner for a role binding there or above`);
};

const unknown = (name: string): RegistryError => new RegistryError('NAME_UNKNOWN', `there is no repository ${name}`);
