import { isWithin, outermost, parentOf, ROOT } from '../base/uid.ts';
import { type CapabilitySet, covers, NO_CAPABILITIES, setOf, union, without } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../resource/caller.ts';

/** Capabilities that a binding gives at a group and below it. */
export interface Grant {
  readonly group: string;
  readonly capabilities: CapabilitySet;
}

export const anonymousCaller: Caller = {
  uid: '',
  actor: undefined,
  can: () => false,
  lacks: (wanted) => wanted,
  reach: () => [],
};

/** A caller as its grants make it. An identity inside a group never reaches out of that group, whatever it is granted. */
export function createCaller(uid: string, actor: Caller['actor'], granted: readonly Grant[]): Caller {
  const home = parentOf(uid);
  const heldIn = new Map<string, CapabilitySet>();
  for (const { group, capabilities } of granted) {
    if (home !== ROOT && !isWithin(group, home)) continue;
    heldIn.set(group, union(heldIn.get(group) ?? NO_CAPABILITIES, capabilities));
  }
  /** By the list of capabilities that was asked for: a method always asks with the same one. */
  const reached = new WeakMap<readonly Capability[], readonly string[]>();

  /** From the uid up through its ancestors: the number of grants does not matter. */
  const heldAt = (at: string): CapabilitySet => {
    let held = heldIn.get(at) ?? NO_CAPABILITIES;
    for (let cut = at.lastIndexOf('/'); cut > 0; cut = at.lastIndexOf('/', cut - 1)) {
      held |= heldIn.get(at.slice(0, cut)) ?? NO_CAPABILITIES;
    }
    return held;
  };

  function reachWith(capabilities: readonly Capability[]): readonly string[] {
    const wanted = wantedBy(capabilities);
    return outermost([...heldIn.keys()].filter((group) => covers(heldAt(group), wanted)));
  }

  return {
    uid,
    actor,
    can: (capabilities, at) => covers(heldAt(at), wantedBy(capabilities)),
    lacks: (wanted, at) => without(wanted, heldAt(at)),
    reach(capabilities) {
      const known = reached.get(capabilities) ?? reachWith(capabilities);
      reached.set(capabilities, known);
      return known;
    },
  };
}

const wants = new WeakMap<readonly Capability[], CapabilitySet>();

/** Lists of capabilities come from the contract and never change. */
function wantedBy(capabilities: readonly Capability[]): CapabilitySet {
  const wanted = wants.get(capabilities) ?? setOf(capabilities);
  wants.set(capabilities, wanted);
  return wanted;
}
