import { outermost, type Uid } from '../base/uid.ts';
import {
  type CapabilitySet,
  capabilitySetOf,
  capabilityUnion,
  covers,
  NO_CAPABILITIES,
  withoutCapabilities,
} from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { isWithinOwnGroup } from '../domains/iam/groups/founder.ts';
import type { Caller, CallerLogin, CallerTerms } from '../resource/caller.ts';

/** Capabilities that an identity holds at a group and its descendants. */
export interface Grant {
  readonly group: Uid;
  readonly capabilities: CapabilitySet;
  /** Whether the group is in an organization that the identity has founded. */
  readonly isFounder?: boolean | undefined;
}

export interface CallerOptions {
  /** False by default. */
  readonly isRestricted?: boolean;
  readonly login?: CallerLogin | undefined;
  readonly terms?: CallerTerms | undefined;
  /** By default, the access of the caller never changes. */
  readonly current?: Caller['current'];
}

export const anonymousCaller: Caller = {
  uid: '',
  actor: undefined,
  isRestricted: false,
  login: undefined,
  can: () => false,
  lacks: (wanted) => wanted,
  reach: () => [],
  current: () => anonymousCaller,
};

/**
 * Makes a caller from its grants. An identity that belongs to a group has no access outside of that group, except in
 * organizations that it has founded.
 */
export function createCaller(
  uid: string,
  actor: Caller['actor'],
  grants: readonly Grant[],
  { isRestricted = false, login, current, terms }: CallerOptions = {},
): Caller {
  const grantedAt = new Map<Uid, CapabilitySet>();
  /** The same map, for the prefixes of a uid that `heldAt` looks up. */
  const grantedAtPrefix: ReadonlyMap<string, CapabilitySet> = grantedAt;
  for (const { group, capabilities, isFounder } of grants) {
    if (!isFounder && !isWithinOwnGroup(uid, group)) continue;
    grantedAt.set(group, capabilityUnion(grantedAt.get(group) ?? NO_CAPABILITIES, capabilities));
  }
  /** Keyed by the list itself, because a method passes the same list on every call. */
  const reachCache = new WeakMap<readonly Capability[], readonly Uid[]>();

  /** Looks up the scope and each of its ancestors, so the cost does not depend on the number of grants. */
  const heldAt = (scope: string): CapabilitySet => {
    let held = grantedAtPrefix.get(scope) ?? NO_CAPABILITIES;
    for (let cut = scope.lastIndexOf('/'); cut > 0; cut = scope.lastIndexOf('/', cut - 1)) {
      held |= grantedAtPrefix.get(scope.slice(0, cut)) ?? NO_CAPABILITIES;
    }
    return held;
  };

  function computeReach(capabilities: readonly Capability[]): readonly Uid[] {
    const required = cachedCapabilitySet(capabilities);
    return outermost([...grantedAt.keys()].filter((group) => covers(heldAt(group), required)));
  }

  const caller: Caller = {
    uid,
    actor,
    isRestricted,
    login,
    terms,
    can: (capabilities, at) => covers(heldAt(at), cachedCapabilitySet(capabilities)),
    lacks: (wanted, at) => withoutCapabilities(wanted, heldAt(at)),
    reach(capabilities) {
      const reach = reachCache.get(capabilities) ?? computeReach(capabilities);
      reachCache.set(capabilities, reach);
      return reach;
    },
    current: current ?? (() => caller),
  };
  return caller;
}

const sets = new WeakMap<readonly Capability[], CapabilitySet>();

/** Cached by the list itself, because the lists come from the contract and never change. */
function cachedCapabilitySet(capabilities: readonly Capability[]): CapabilitySet {
  const set = sets.get(capabilities) ?? capabilitySetOf(capabilities);
  sets.set(capabilities, set);
  return set;
}
