import { type CapabilitySet, capabilitySetOf, capabilityUnion } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';

/** An action on a repository, as Docker's token authentication specification names it. */
export type Action = 'pull' | 'push' | 'delete';

/** Some actions on one repository: `repository:<name>:pull,push`. */
export interface Scope {
  readonly name: string;
  readonly actions: readonly Action[];
}

const capabilities: Readonly<Record<Action, CapabilitySet>> = {
  pull: capabilitySetOf([
    Capability.CAP_REPO_LIST,
    Capability.CAP_MANIFEST_LIST,
    Capability.CAP_TAG_LIST,
    Capability.CAP_REFERRERS_LIST,
    Capability.CAP_REPO_BLOBS_GET,
  ]),
  push: capabilitySetOf([
    Capability.CAP_REPO_CREATE,
    Capability.CAP_MANIFEST_CREATE,
    Capability.CAP_MANIFEST_UPDATE,
    Capability.CAP_TAG_CREATE,
    Capability.CAP_TAG_UPDATE,
  ]),
  delete: capabilitySetOf([Capability.CAP_MANIFEST_DELETE, Capability.CAP_TAG_DELETE]),
};
const all = Object.keys(capabilities) as readonly Action[];

/** All capabilities that these actions can need. */
export const capabilitiesFor = (actions: Iterable<Action>): CapabilitySet =>
  capabilityUnion(...[...new Set(actions)].map((action) => capabilities[action]));

export const formatScope = ({ name, actions }: Scope): string => `repository:${name}:${actions.join(',')}`;

/** Undefined for scopes of other types, such as `registry:catalog:*`, and for malformed ones. */
export function parseScope(text: string): Scope | undefined {
  // The name may begin with a host and a port, so it can contain a colon.
  const [, name, listed = ''] = /^repository(?:\([a-z0-9]+\))?:([^\s"]{1,300}):([a-z*,]+)$/.exec(text) ?? [];
  if (name === undefined) return undefined;
  const requested = new Set(listed.split(','));
  const actions = requested.has('*') ? all : all.filter((action) => requested.has(action));
  return { name, actions };
}
