import type { VersionPair } from '../support/version-pairs.ts';
import { subscriptions } from './events.ts';
import { groups, identities, roleBindings, roles } from './identities.ts';
import { accountAssociations, groupInvites, identityProviders, mappings } from './identity-providers.ts';
import { repos, tags } from './registry.ts';

/** Calls `use` with every resource that can be written through both v1 and v2. */
export function forEachVersionPair(use: <V1, V2>(pair: VersionPair<V1, V2>) => void): void {
  use(groups);
  use(identities);
  use(roles);
  use(roleBindings);
  use(identityProviders);
  use(mappings);
  use(groupInvites);
  use(accountAssociations);
  use(repos);
  use(tags);
  use(subscriptions);
}
