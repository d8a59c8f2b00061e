import { isWithin, outermost, parentOf, ROOT } from '../base/uid.ts';
import { type CapabilitySet, covers, NO_CAPABILITIES, setOf, union, without } from '../contract/capabilities.ts';
import type { Caller } from '../resource/context.ts';

/** Capabilities that a binding gives at a group and below it. */
export interface Grant {
  readonly group: string;
  readonly capabilities: CapabilitySet;
}

export const nobody: Caller = {
  uid: '',
  actor: undefined,
  can: () => false,
  lacks: (wanted) => wanted,
  reach: () => [],
};

/** A caller as its grants make it. An identity inside a group never reaches out of that group, whatever it is granted. */
export function createCaller(uid: string, actor: Caller['actor'], granted: readonly Grant[]): Caller {
  const home = parentOf(uid);
  const grants = home === ROOT ? granted : granted.filter(({ group }) => isWithin(group, home));

  const heldAt = (at: string): CapabilitySet => {
    let held = NO_CAPABILITIES;
    for (const { group, capabilities } of grants) if (isWithin(at, group)) held = union(held, capabilities);
    return held;
  };

  return {
    uid,
    actor,
    can: (capabilities, at) => covers(heldAt(at), setOf(capabilities)),
    lacks: (wanted, at) => without(wanted, heldAt(at)),
    reach(capabilities) {
      const wanted = setOf(capabilities);
      return outermost(grants.map(({ group }) => group).filter((group) => covers(heldAt(group), wanted)));
    },
  };
}
