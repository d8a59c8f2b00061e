import { type JsonObject, objectIn, objectsIn, textIn, textsIn, timeIn } from '../lenient.ts';
import type { Sbom, SbomPackage, SbomRelation } from './sbom.ts';

/** JSON of SPDX 2: https://spdx.github.io/spdx-spec/v2.3/ */
export const isSpdx = ({ spdxVersion }: JsonObject): boolean => textIn(spdxVersion).startsWith('SPDX-2');

export function readSpdx(json: JsonObject): Sbom {
  const creation = objectIn(json.creationInfo);
  const creators = textsIn(creation.creators);
  return {
    format: 'spdx',
    name: textIn(json.name),
    tools: named(creators, /^Tool:\s*/),
    authors: named(creators, /^(?:Person|Organization):\s*/),
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

const named = (creators: readonly string[], prefix: RegExp): string[] =>
  creators.filter((creator) => prefix.test(creator)).map((creator) => creator.replace(prefix, ''));

/** The specification's words for what nobody knows or says. */
const said = (text: string): string => (text === 'NOASSERTION' || text === 'NONE' ? '' : text);

const packageIn = (json: JsonObject): SbomPackage => ({
  id: textIn(json.SPDXID),
  name: textIn(json.name),
  version: textIn(json.versionInfo),
  license: said(textIn(json.licenseDeclared)) || said(textIn(json.licenseConcluded)),
  description: textIn(json.description),
  purl: textIn(objectsIn(json.externalRefs).find(({ referenceType }) => referenceType === 'purl')?.referenceLocator),
});

/** Relations have a direction; what is written the other way round is turned. */
const RELATIONS: ReadonlyMap<string, { readonly type: SbomRelation['type']; readonly isTurned?: true }> = new Map(
  Object.entries({
    DESCRIBES: { type: 'describes' },
    DESCRIBED_BY: { type: 'describes', isTurned: true },
    CONTAINS: { type: 'contains' },
    CONTAINED_BY: { type: 'contains', isTurned: true },
    DEPENDS_ON: { type: 'depends on' },
    DEPENDENCY_OF: { type: 'depends on', isTurned: true },
    GENERATED_FROM: { type: 'generated from' },
    GENERATES: { type: 'generated from', isTurned: true },
  }),
);

function relationIn({ spdxElementId, relationshipType, relatedSpdxElement }: JsonObject): SbomRelation[] {
  const known = RELATIONS.get(textIn(relationshipType));
  const [from, to] = [textIn(spdxElementId), textIn(relatedSpdxElement)];
  if (!known || from === '' || to === '') return [];
  return [known.isTurned ? { from: to, type: known.type, to: from } : { from, type: known.type, to }];
}
