import { type JsonObject, objectIn, objectsIn, textIn, textsIn, timeIn } from '../lenient.ts';
import type { Sbom, SbomPackage, SbomRelation } from './sbom.ts';

/** JSON of CycloneDX: https://cyclonedx.org/docs/1.6/json/ */
export const isCycloneDx = ({ bomFormat }: JsonObject): boolean => bomFormat === 'CycloneDX';

export function readCycloneDx(json: JsonObject): Sbom {
  const metadata = objectIn(json.metadata);
  const subject = objectIn(metadata.component);
  const components = nested(json.components);
  const isFile = ({ type }: JsonObject): boolean => type === 'file';
  return {
    format: 'cyclonedx',
    name: textIn(subject.name),
    tools: toolsIn(metadata.tools),
    authors: objectsIn(metadata.authors).map(({ name, email }) => textIn(name) || textIn(email)),
    created: timeIn(metadata.timestamp),
    packages: components.filter((component) => !isFile(component)).map(packageIn),
    files: components
      .filter(isFile)
      .map((file) => ({ id: textIn(file['bom-ref']), name: textIn(file.name), types: [] })),
    relations: objectsIn(json.dependencies).flatMap(({ ref, dependsOn }): SbomRelation[] =>
      textsIn(dependsOn).map((to) => ({ from: textIn(ref), type: 'depends on', to })),
    ),
  };
}

/** Components hold components. Walked without recursion, as deep as they may be. */
function nested(value: unknown): JsonObject[] {
  const found = objectsIn(value);
  // An array grows while it is walked. One by one: as arguments of one call, too many would not fit on the stack.
  for (const component of found) for (const inner of objectsIn(component.components)) found.push(inner);
  return found;
}

/** A list until version 1.4, and an object with a list of components since. */
const toolsIn = (tools: unknown): string[] =>
  (Array.isArray(tools) ? objectsIn(tools) : objectsIn(objectIn(tools).components)).map(({ name, version }) =>
    [textIn(name), textIn(version)].filter(Boolean).join(' '),
  );

const packageIn = (json: JsonObject): SbomPackage => ({
  id: textIn(json['bom-ref']),
  name: [textIn(json.group), textIn(json.name)].filter(Boolean).join('/'),
  version: textIn(json.version),
  license: licensesIn(json.licenses).join(' AND '),
  description: textIn(json.description),
  purl: textIn(json.purl),
});

const licensesIn = (licenses: unknown): string[] =>
  objectsIn(licenses)
    .map(
      ({ license, expression }) => textIn(expression) || textIn(objectIn(license).id) || textIn(objectIn(license).name),
    )
    .filter(Boolean);
