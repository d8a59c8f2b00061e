import { denied } from '../../../base/errors.ts';
import { nameOf } from '../../../contract/capabilities.ts';
import type { ReadContext } from '../../../resource/operation.ts';

/*
 * Methods that the contract does not scope are not checked before they run: their handlers say where the caller needs
 * their capabilities.
 */

type Call = Pick<ReadContext, 'caller' | 'method'>;

/** Refuses a caller who lacks the capabilities of the method at `uid`. */
export function requireAt(call: Call, uid: string): void {
  if (!call.caller.can(call.method.capabilities, uid)) throw lacking(call, uid);
}

/** The outermost groups at which the caller has the capabilities of the method; refuses one who has them nowhere. */
export function requireSomewhere(call: Call): readonly string[] {
  const reach = call.caller.reach(call.method.capabilities);
  if (reach.length === 0) throw lacking(call, 'some group');
  return reach;
}

function lacking({ method }: Call, scope: string) {
  const capabilities = method.capabilities.map(nameOf).join(', ');
  const where = { capabilities, scope };
  return denied(`needs ${capabilities} on ${scope}; ask an owner for a role binding there or above`, where);
}
