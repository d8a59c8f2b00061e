import { type CapabilitySet, setOf, union } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';

/** What can be done with a repository, in the words of Docker's token specification. */
export type Action = 'pull' | 'push' | 'delete';

/** Some actions on one repository: `repository:<name>:pull,push`. */
export interface Scope {
  readonly name: string;
  readonly actions: readonly Action[];
}

const capabilities: Readonly<Record<Action, CapabilitySet>> = {
  pull: setOf([
    Capability.CAP_REPO_LIST,
    Capability.CAP_MANIFEST_LIST,
    Capability.CAP_TAG_LIST,
    Capability.CAP_REFERRERS_LIST,
    Capability.CAP_REPO_BLOBS_GET,
  ]),
  push: setOf([
    Capability.CAP_REPO_CREATE,
    Capability.CAP_MANIFEST_CREATE,
    Capability.CAP_MANIFEST_UPDATE,
    Capability.CAP_TAG_CREATE,
    Capability.CAP_TAG_UPDATE,
  ]),
  delete: setOf([Capability.CAP_MANIFEST_DELETE, Capability.CAP_TAG_DELETE]),
};
const all = Object.keys(capabilities) as readonly Action[];

/** All that these actions can ever need. */
export const capabilitiesFor = (actions: Iterable<Action>): CapabilitySet =>
  union(...[...new Set(actions)].map((action) => capabilities[action]));

export const formatScope = ({ name, actions }: Scope): string => `repository:${name}:${actions.join(',')}`;

/** The scope in a text; undefined for other kinds, such as `registry:catalog:*`, and for what is none. */
export function parseScope(text: string): Scope | undefined {
  // The name of a repository may begin with a host and a port.
  const [, name, listed = ''] = /^repository(?:\([a-z0-9]+\))?:([^\s"]{1,300}):([a-z*,]+)$/.exec(text) ?? [];
  if (name === undefined) return undefined;
  const asked = new Set(listed.split(','));
  const actions = asked.has('*') ? all : all.filter((action) => asked.has(action));
  return { name, actions };
}
