import { denied } from '../../../base/errors.ts';
import type { ParentUid } from '../../../base/uid.ts';
import { type CapabilitySet, capabilitiesIn, capabilityName, NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import type { ReadContext } from '../../../resource/operation.ts';

/** How many capabilities the message names. The metadata of the error names all. */
const MAX_NAMES = 10;

type CallerContext = Pick<ReadContext, 'caller'>;

/**
 * Refuses to give capabilities that the caller does not hold at `group`, which would be a privilege escalation. Every
 * write that gives capabilities calls it: for a role, role binding, invite, default role or mapping.
 */
export const requireGrantable = (ctx: CallerContext, capabilities: CapabilitySet, group: ParentUid): void =>
  requireHeld(ctx, capabilities, group, 'grant');

/**
 * Refuses to take away capabilities that the caller does not hold at `group`, because no caller may remove or weaken what
 * is stronger than itself. Every write that changes or deletes a source of capabilities calls it for the old ones.
 */
export const requireRevocable = (ctx: CallerContext, capabilities: CapabilitySet, group: ParentUid): void =>
  requireHeld(ctx, capabilities, group, 'revoke');

function requireHeld(
  { caller }: CallerContext,
  capabilities: CapabilitySet,
  group: ParentUid,
  action: 'grant' | 'revoke',
): void {
  const missing = caller.lacks(capabilities, group);
  if (missing === NO_CAPABILITIES) return;
  const names = capabilitiesIn(missing).map(capabilityName);
  const more = names.length - MAX_NAMES;
  const listed = names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
  throw denied(`you cannot ${action} ${listed} on ${group}, because you do not hold it there; ask an owner`, {
    capabilities: names.join(', '),
    scope: group,
  });
}
