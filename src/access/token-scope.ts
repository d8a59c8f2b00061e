import { isWithin, type Uid } from '../base/uid.ts';
import { type CapabilitySet, capabilityUnion } from '../contract/capabilities.ts';
import type { Grant } from './create-caller.ts';

/** The restrictions of an access token. An absent one does not restrict. */
export interface TokenScope {
  /** The token is valid at these groups and their descendants only. */
  readonly scopes?: readonly Uid[] | undefined;
  /** The token gives these capabilities at most. */
  readonly capabilities?: CapabilitySet | undefined;
}

/** Restricts grants to a token scope. A grant at an ancestor of a group in `scopes` becomes a grant at that group. */
export function narrowGrants(grants: readonly Grant[], { scopes, capabilities }: TokenScope): readonly Grant[] {
  const withinScopes = scopes?.flatMap((scope) => {
    const above = grants.filter(({ group }) => isWithin(scope, group));
    const below = grants.filter(({ group }) => group !== scope && isWithin(group, scope));
    // All grants in an organization are those of its founder, or none.
    const isFounder = above.some((grant) => grant.isFounder);
    const capabilities = capabilityUnion(...above.map((grant) => grant.capabilities));
    return [{ group: scope, capabilities, isFounder }, ...below];
  });
  const narrowed = withinScopes ?? grants;
  return capabilities === undefined
    ? narrowed
    : narrowed.map((grant) => ({ ...grant, capabilities: grant.capabilities & capabilities }));
}
