import type { ParentUid, Uid } from '../base/uid.ts';
import type { CapabilitySet } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';

/** The identity that makes a call, and what it may do where. */
export interface Caller {
  /** The uid of the identity; empty for an anonymous caller. */
  readonly uid: string;
  /** What events say about who acted. */
  readonly actor: { readonly subject: string; readonly act?: Readonly<Record<string, string>> } | undefined;
  /** Whether the caller holds all of `capabilities` at `uid` or at one of its ancestors. No caller holds any at ROOT. */
  can(capabilities: readonly Capability[], uid: ParentUid): boolean;
  /** The part of `wanted` that the caller does not hold at `uid`. Callers can only grant what they hold. */
  lacks(wanted: CapabilitySet, uid: ParentUid): CapabilitySet;
  /** The outermost groups at which the caller holds all of `capabilities`, sorted. */
  reach(capabilities: readonly Capability[]): readonly Uid[];
}
