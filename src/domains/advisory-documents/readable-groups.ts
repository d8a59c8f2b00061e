import { outermost, type Uid } from '../../base/uid.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../../resource/caller.ts';
import type { ReadContext } from '../../resource/operation.ts';

/** Returns the groups whose advisories a caller may read. */
export type ReadableGroups = (caller: Caller) => readonly Uid[];

/** The public groups, and those at which the caller may list advisories. */
export const createReadableGroups =
  (publicGroups: readonly Uid[]): ReadableGroups =>
  (caller) =>
    outermost([...publicGroups, ...caller.reach([Capability.CAP_ADVISORIES_LIST])]);

/** The context of a call with another reach of the caller, whatever capabilities the operation asks for. */
export const withReach = (ctx: ReadContext, reach: readonly Uid[]): ReadContext => ({
  ...ctx,
  caller: { ...ctx.caller, reach: () => reach },
});
