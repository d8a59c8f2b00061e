import { splitNameParts, splitWords } from '../../base/search-terms.ts';
import { suffixOf } from '../../base/uid.ts';
import {
  type Artifact,
  ArtifactSchema,
  type Ecosystem,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { defineResource, type State } from '../../resource/definition.ts';
import { rulesOf } from './ecosystems.ts';

/** Properties of an artifact that follow from its versions and that clients do not see. */
export interface ArtifactState extends State {
  /** The CUDA versions that it is built for. */
  readonly cuda: readonly string[];
  /** Whether one of its versions has security fixes that upstream does not have. */
  readonly remediated: boolean;
  /** The licence of its latest version; absent in artifacts of earlier releases. */
  readonly license?: string;
}

/** A library of a group. Imports create it together with its versions (put-versions.ts). */
export const artifacts = defineResource({
  kind: 'artifact',
  plural: 'artifacts',
  schema: ArtifactSchema,
  parents: ['group'],
  cascade: ['artifact version'],
  unique: ({ ecosystem, name }, group) => [
    { key: artifactKey(group, ecosystem, name), taken: `an artifact named ${name} exists in ${group}` },
  ],
  references: { id: ({ uid }) => [suffixOf(uid)] },
  // Sorted without regard to case and to the kind of dash.
  orders: { name: ({ ecosystem, name }) => rulesOf(ecosystem).normalizeName(name).toLowerCase() },
  defaultOrder: 'name',
  facets: {
    ecosystems: ({ ecosystem }) => [String(ecosystem)],
    cuda_version: (_, state) => (state as ArtifactState | undefined)?.cuda ?? [],
    remediated: (_, state) => ((state as ArtifactState | undefined)?.remediated ? [REMEDIATED] : []),
    words: searchWords,
  },
  facetOrders: ['name'],
  filters: {
    cuda_version: { anyOf: 'cuda_version', as: normalizeCudaVersion },
    remediated: { anyOf: 'remediated', as: () => REMEDIATED },
    query: { allOf: (text) => splitWords(text).map((word) => ({ field: 'words', values: [word] })) },
  },
});

/** The value of the facet `remediated`. */
export const REMEDIATED = 'yes';

/** Names are unique in a group and an ecosystem. */
export const artifactKey = (group: string, ecosystem: Ecosystem, name: string): string =>
  `${group}/${ecosystem}/${rulesOf(ecosystem).normalizeName(name)}`;

/** The words by which an artifact is found: `slf4j`, `api`, `slf4j-api` and `org.slf4j` find `org.slf4j:slf4j-api`. */
function searchWords({ ecosystem, name }: Artifact): string[] {
  const lowerCase = name.toLowerCase();
  return [lowerCase, rulesOf(ecosystem).normalizeName(lowerCase), ...lowerCase.split(':'), ...splitNameParts(name)];
}

/** Converts `cu121`, the notation of wheel indexes, to `12.1`. */
function normalizeCudaVersion(version: string): string {
  return version.replace(/^cu(\d+)(\d)$/, '$1.$2');
}
