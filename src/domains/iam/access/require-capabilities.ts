import { type ApiError, denied } from '../../../base/errors.ts';
import { capabilityName } from '../../../contract/capabilities.ts';
import type { ReadContext } from '../../../resource/operation.ts';

// For the handlers of methods that are unscoped in the contract. The pipeline does not authorize such calls.

type CallerAndMethod = Pick<ReadContext, 'caller' | 'method'>;

/** Refuses a caller that lacks the capabilities of the method at `uid`. */
export function requireCapabilitiesAt(ctx: CallerAndMethod, uid: string): void {
  if (!ctx.caller.can(ctx.method.capabilities, uid)) throw missingCapabilities(ctx, uid);
}

/** Returns the caller's reach with the capabilities of the method. Refuses a caller that has none. */
export function requireCapabilitiesSomewhere(ctx: CallerAndMethod): readonly string[] {
  const reach = ctx.caller.reach(ctx.method.capabilities);
  if (reach.length === 0) throw missingCapabilities(ctx, 'some group');
  return reach;
}

function missingCapabilities({ method }: CallerAndMethod, scope: string): ApiError {
  const capabilities = method.capabilities.map(capabilityName).join(', ');
  return denied(`needs ${capabilities} on ${scope}; ask an owner for a role binding there or above`, {
    capabilities,
    scope,
  });
}
