import { type ApiError, denied } from '../base/errors.ts';
import { type ParentUid, parentOf, ROOT, type Uid } from '../base/uid.ts';
import { capabilityName } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from './caller.ts';
import type { CallContext } from './operation.ts';

/** Refuses a caller who lacks any of `capabilities` at `uid`. `name` is what the message calls the resource. */
export function requireCapabilities(
  capabilities: readonly Capability[],
  caller: Caller,
  uid: ParentUid,
  name: string = uid,
): void {
  if (!caller.can(capabilities, uid)) throw missingCapabilities(capabilities, name);
}

/** Returns the caller's reach with `capabilities`. Refuses a caller who has none. */
export function requireReach(capabilities: readonly Capability[], caller: Caller): readonly Uid[] {
  const reach = caller.reach(capabilities);
  if (reach.length === 0) throw missingCapabilities(capabilities, 'some group');
  return reach;
}

/**
 * Returns the reach of the caller of a List method. Refuses a caller who has none, except in v1, where a list is empty
 * then.
 */
export const requireListReach = ({ caller, method }: CallContext): readonly Uid[] =>
  method.isV1 ? caller.reach(method.capabilities) : requireReach(method.capabilities, caller);

/**
 * Whether the caller holds `capabilities` for the whole server: it holds them at an organization, and has no parent. An
 * identity that belongs to a group has no access outside of that group, and a restricted token none outside of its
 * scopes.
 */
export const holdsServerWide = (capabilities: readonly Capability[], caller: Caller): boolean =>
  !caller.isRestricted &&
  parentOf(caller.uid) === ROOT &&
  caller.reach(capabilities).some((group) => parentOf(group) === ROOT);

/** Refuses a caller who does not hold `capabilities` for the whole server. */
export function requireServerWide(capabilities: readonly Capability[], caller: Caller): void {
  if (holdsServerWide(capabilities, caller)) return;
  const names = capabilities.map(capabilityName).join(', ');
  throw denied(`needs ${names} for the whole server; ask an operator of the server`, { capabilities: names });
}

/** The same error whether or not the resource exists. */
export function missingCapabilities(capabilities: readonly Capability[], name: string): ApiError {
  const names = capabilities.map(capabilityName).join(', ');
  return denied(`needs ${names} on ${name}; ask an owner for a role binding there or above`, {
    capabilities: names,
    scope: name,
  });
}
