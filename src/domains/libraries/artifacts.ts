import { splitNameParts, splitWords } from '../../base/search-terms.ts';
import { suffixOf } from '../../base/uid.ts';
import {
  type Artifact,
  ArtifactSchema,
  type Ecosystem,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { defineResource, type State } from '../../resource/definition.ts';
import { rulesOf } from './ecosystems.ts';

/** What its versions make of an artifact, beside what everybody sees. */
export interface ArtifactState extends State {
  /** The versions of CUDA that it is built for. */
  readonly cuda: readonly string[];
  /** One of its versions carries security fixes of its own. */
  readonly remediated: boolean;
}

/** A library of a group. It follows from its versions, which importers bring (put-versions.ts). */
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
  // As people look for names: neither case nor the kind of dash tells two apart.
  orders: { name: ({ ecosystem, name }) => rulesOf(ecosystem).normalName(name).toLowerCase() },
  defaultOrder: 'name',
  facets: {
    ecosystems: ({ ecosystem }) => [String(ecosystem)],
    cuda_version: (_, state) => (state as ArtifactState | undefined)?.cuda ?? [],
    remediated: (_, state) => ((state as ArtifactState | undefined)?.remediated ? [REMEDIATED] : []),
    words: searchWords,
  },
  facetOrders: ['name'],
  filters: {
    cuda_version: { anyOf: 'cuda_version', as: cudaVersion },
    remediated: { anyOf: 'remediated', as: () => REMEDIATED },
    query: { allOf: (text) => splitWords(text).map((word) => ({ field: 'words', values: [word] })) },
  },
});

const REMEDIATED = 'yes';

/** Names are unique in a group and an ecosystem. */
export const artifactKey = (group: string, ecosystem: Ecosystem, name: string): string =>
  `${group}/${ecosystem}/${rulesOf(ecosystem).normalName(name)}`;

/** `slf4j` finds `org.slf4j:slf4j-api`, and so do `api`, `slf4j-api` and `org.slf4j`. */
function searchWords({ ecosystem, name }: Artifact): string[] {
  const written = name.toLowerCase();
  return [written, rulesOf(ecosystem).normalName(written), ...written.split(':'), ...splitNameParts(name)];
}

/** Indexes of wheels write `cu121` for `12.1`. */
function cudaVersion(asked: string): string {
  return asked.replace(/^cu(\d+)(\d)$/, '$1.$2');
}
