import { outermost } from '../../base/uid.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../../resource/caller.ts';
import type { Operation } from '../../resource/operation.ts';

/** The groups whose advisories a caller may read. */
export type ReadableGroups = (caller: Caller) => readonly string[];

/** Those that are open to everybody, and those where the caller may list advisories. */
export const readableGroups =
  (open: readonly string[]): ReadableGroups =>
  (caller) =>
    outermost([...open, ...caller.reach([Capability.CAP_ADVISORIES_LIST])]);

/** The same operation for callers who reach these groups, whatever else they may do. */
export function reachingOnly(groups: ReadableGroups, operation: Operation | undefined): Operation {
  if (operation?.mode !== 'read') throw new Error('only what reads can be open to everybody');
  return {
    mode: 'read',
    run: (ctx, request) =>
      operation.run({ ...ctx, caller: { ...ctx.caller, reach: () => groups(ctx.caller) } }, request),
  };
}
