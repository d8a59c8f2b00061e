import { isWithin, parentOf, ROOT } from '../base/uid.ts';
import { type CapabilitySet, covers, setOf } from '../contract/capabilities.ts';
import type { Caller } from '../resource/context.ts';

/** Capabilities that a binding gives at a group and below it. */
export interface Grant {
  readonly group: string;
  readonly capabilities: CapabilitySet;
}

export const nobody: Caller = { uid: '', actor: undefined, can: () => false, reach: () => [] };

/** A caller as its grants make it. An identity inside a group never reaches out of that group, whatever it is granted. */
export function createCaller(uid: string, actor: Caller['actor'], granted: readonly Grant[]): Caller {
  const home = parentOf(uid);
  const grants = home === ROOT ? granted : granted.filter(({ group }) => isWithin(group, home));

  const holdsAt = (wanted: CapabilitySet, at: string): boolean => {
    let held = 0n;
    for (const { group, capabilities } of grants) if (isWithin(at, group)) held |= capabilities;
    return covers(held, wanted);
  };

  return {
    uid,
    actor,
    can: (capabilities, at) => holdsAt(setOf(capabilities), at),
    reach(capabilities) {
      const wanted = setOf(capabilities);
      const held = grants.map(({ group }) => group).filter((group) => holdsAt(wanted, group));
      return [...new Set(held)]
        .filter((group) => !held.some((outer) => outer !== group && isWithin(group, outer)))
        .sort();
    },
  };
}
