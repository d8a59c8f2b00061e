import type { Grant } from '../../access/caller.ts';
import { NO_CAPABILITIES } from '../../contract/capabilities.ts';
import { mappedGrants } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { capabilitiesOf } from '../../domains/iam/roles/roles.ts';
import type { Reader } from '../../store/store.ts';
import type { Provider } from '../login/login-validity.ts';

/** What the groups of a person at an identity provider are worth here, as of now. */
export async function grantsThrough(db: Reader, provider: Provider | undefined): Promise<Grant[]> {
  if (!provider || provider.groups.length === 0) return [];
  const grants: Grant[] = [];
  for (const { group, roleUid } of await mappedGrants(db, provider.uid, provider.groups)) {
    grants.push({ group, capabilities: (await capabilitiesOf(db, roleUid)) ?? NO_CAPABILITIES });
  }
  return grants;
}
