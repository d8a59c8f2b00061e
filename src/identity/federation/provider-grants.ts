import type { Grant } from '../../access/create-caller.ts';
import { NO_CAPABILITIES } from '../../contract/capabilities.ts';
import { mappedRoles } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { capabilitiesOf } from '../../domains/iam/roles/roles.ts';
import type { Reader } from '../../store/store.ts';
import type { ProviderMembership } from '../login/login-validity.ts';

/** Returns the grants that a user has now by the groups at the identity provider of the login. */
export async function providerGrants(db: Reader, provider: ProviderMembership | undefined): Promise<Grant[]> {
  if (!provider || provider.groups.length === 0) return [];
  const grants: Grant[] = [];
  for (const { group, roleUid } of await mappedRoles(db, provider.uid, provider.groups)) {
    grants.push({ group, capabilities: (await capabilitiesOf(db, roleUid)) ?? NO_CAPABILITIES });
  }
  return grants;
}
