import type { Pair } from '../support/pairs.ts';
import { subscriptions } from './events.ts';
import { groups, identities, roleBindings, roles } from './identities.ts';
import { accountAssociations, groupInvites, identityProviders, mappings } from './identity-providers.ts';
import { repos, tags } from './registry.ts';

/** Every resource that can be written in both versions. */
export function forEachPair(use: <V1, V2>(pair: Pair<V1, V2>) => void): void {
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
