import { type JsonObject, objectIn, objectsIn, textIn, textsIn, timeIn } from '../lenient-json.ts';
import type { Sbom, SbomPackage, SbomRelation } from './sbom.ts';

/** Whether this is SPDX 2 in JSON: https://spdx.github.io/spdx-spec/v2.3/ */
export const isSpdx = ({ spdxVersion }: JsonObject): boolean => textIn(spdxVersion).startsWith('SPDX-2');

export function readSpdx(json: JsonObject): Sbom {
  const creation = objectIn(json.creationInfo);
  const creators = textsIn(creation.creators);
  return {
    format: 'spdx',
    name: textIn(json.name),
    tools: creatorsOf(creators, /^Tool:\s*/),
    authors: creatorsOf(creators, /^(?:Person|Organization):\s*/),
    created: timeIn(creation.created),
    packages: objectsIn(json.packages).map(packageIn),
    files: objectsIn(json.files).map(({ SPDXID, fileName, fileTypes }) => ({
      id: textIn(SPDXID),
      name: textIn(fileName),
      types: textsIn(fileTypes),
    })),
    relations: [
      ...textsIn(json.documentDescribes).map((to) => ({ from: textIn(json.SPDXID), type: 'describes', to }) as const),
      ...objectsIn(json.relationships).flatMap(relationIn),
    ],
  };
}

const creatorsOf = (creators: readonly string[], prefix: RegExp): string[] =>
  creators.filter((creator) => prefix.test(creator)).map((creator) => creator.replace(prefix, ''));

/** Returns an empty string for the values by which SPDX says that something is unknown or does not exist. */
const knownValue = (text: string): string => (text === 'NOASSERTION' || text === 'NONE' ? '' : text);

const packageIn = (json: JsonObject): SbomPackage => ({
  id: textIn(json.SPDXID),
  name: textIn(json.name),
  version: textIn(json.versionInfo),
  license: knownValue(textIn(json.licenseDeclared)) || knownValue(textIn(json.licenseConcluded)),
  description: textIn(json.description),
  purl: textIn(objectsIn(json.externalRefs).find(({ referenceType }) => referenceType === 'purl')?.referenceLocator),
});

/** Relationship types. Those of the opposite direction are reversed. */
const RELATIONS: ReadonlyMap<string, { readonly type: SbomRelation['type']; readonly isReversed?: true }> = new Map(
  Object.entries({
    DESCRIBES: { type: 'describes' },
    DESCRIBED_BY: { type: 'describes', isReversed: true },
    CONTAINS: { type: 'contains' },
    CONTAINED_BY: { type: 'contains', isReversed: true },
    DEPENDS_ON: { type: 'depends on' },
    DEPENDENCY_OF: { type: 'depends on', isReversed: true },
    GENERATED_FROM: { type: 'generated from' },
    GENERATES: { type: 'generated from', isReversed: true },
  }),
);

function relationIn({ spdxElementId, relationshipType, relatedSpdxElement }: JsonObject): SbomRelation[] {
  const relation = RELATIONS.get(textIn(relationshipType));
  const [from, to] = [textIn(spdxElementId), textIn(relatedSpdxElement)];
  if (!relation || from === '' || to === '') return [];
  return [relation.isReversed ? { from: to, type: relation.type, to: from } : { from, type: relation.type, to }];
}
