import { denied } from '../../../base/errors.ts';
import { type CapabilitySet, listOf, NO_CAPABILITIES, nameOf } from '../../../contract/capabilities.ts';
import type { ReadContext } from '../../../resource/operation.ts';

/** So many names help; the error's metadata has them all. */
const NAMED_IN_MESSAGE = 10;

/**
 * Nobody hands out more than they hold: whatever gives `capabilities` to somebody at the group `at` goes through here,
 * be it a role, a binding, an invite, a default role or a mapping.
 */
export function requireGrantable(
  { caller }: Pick<ReadContext, 'caller'>,
  capabilities: CapabilitySet,
  at: string,
): void {
  const lacking = caller.lacks(capabilities, at);
  if (lacking === NO_CAPABILITIES) return;
  const names = listOf(lacking).map(nameOf);
  const more = names.length - NAMED_IN_MESSAGE;
  const named = names.slice(0, NAMED_IN_MESSAGE).join(', ') + (more > 0 ? ` and ${more} more` : '');
  throw denied(`to hand out ${named} on ${at} you must hold it there yourself`, {
    capabilities: names.join(', '),
    scope: at,
  });
}
