import { isWithin } from '../base/uid.ts';
import { type CapabilitySet, union } from '../contract/capabilities.ts';
import type { Grant } from './caller.ts';

/** What a token was restricted to when it was issued. */
export interface TokenScope {
  /** Groups outside of which the token is worth nothing. */
  readonly scopes?: readonly string[] | undefined;
  /** Capabilities beyond which it gives nothing. */
  readonly capabilities?: CapabilitySet | undefined;
}

/** What is left of grants under a narrow token. Grants from above a scope hold at the scope. */
export function narrowGrants(grants: readonly Grant[], { scopes, capabilities }: TokenScope): readonly Grant[] {
  const within = scopes?.flatMap((scope) => {
    const above = grants.filter(({ group }) => isWithin(scope, group)).map((grant) => grant.capabilities);
    const below = grants.filter(({ group }) => group !== scope && isWithin(group, scope));
    return [{ group: scope, capabilities: union(...above) }, ...below];
  });
  const kept = within ?? grants;
  return capabilities === undefined
    ? kept
    : kept.map(({ group, capabilities: held }) => ({ group, capabilities: held & capabilities }));
}
