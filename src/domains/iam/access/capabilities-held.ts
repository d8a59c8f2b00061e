import { isWithin, type Uid } from '../../../base/uid.ts';
import { type CapabilitySet, capabilityUnion, NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import type { Caller, CallerLogin } from '../../../resource/caller.ts';
import { find } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { isEnabled } from '../disabled.ts';
import { canHaveRoles, isWithinOwnGroup } from '../groups/founder.ts';
import { identities } from '../identities/identities.ts';
import { mappedRoles } from '../identity-providers/external-group-role-mappings.ts';
import { identityProviders } from '../identity-providers/identity-providers.ts';
import { bindingsOf } from '../roles/role-bindings.ts';
import { capabilitiesOf } from '../roles/roles.ts';

/** An identity, and the identity provider of the login by which it acted, as they can be stored. */
export interface Actor extends Pick<Caller, 'uid'>, Pick<CallerLogin, 'provider'> {}

/**
 * The capabilities that an identity holds at `group` now, by its role bindings and by the groups at its identity provider
 * that it had when it acted. None when the identity or that provider was deleted or disabled.
 */
export async function capabilitiesHeld(db: Reader, { uid, provider }: Actor, group: Uid): Promise<CapabilitySet> {
  if (!(await canHaveRoles(db, uid, group))) return NO_CAPABILITIES;
  if (!isEnabled(await find(db, identities, uid))) return NO_CAPABILITIES;
  if (provider && !isEnabled(await find(db, identityProviders, provider.uid))) return NO_CAPABILITIES;
  const bound = (await bindingsOf(db, uid)).map(({ parent, message }) => ({ at: parent, roleUid: message.roleUid }));
  const mapped = provider && isWithinOwnGroup(uid, group) ? await mappedRoles(db, provider.uid, provider.groups) : [];
  const roleUids = [...bound, ...mapped.map(({ group: at, roleUid }) => ({ at, roleUid }))]
    .filter(({ at }) => isWithin(group, at))
    .map(({ roleUid }) => roleUid);
  const held: CapabilitySet[] = [];
  for (const roleUid of new Set(roleUids)) held.push((await capabilitiesOf(db, roleUid)) ?? NO_CAPABILITIES);
  return capabilityUnion(...held);
}
