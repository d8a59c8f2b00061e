import { type JsonObject, objectIn, objectsIn, textIn, textsIn, timeIn } from '../lenient-json.ts';
import type { Sbom, SbomPackage, SbomRelation } from './sbom.ts';

/** Whether this is CycloneDX in JSON: https://cyclonedx.org/docs/1.6/json/ */
export const isCycloneDx = ({ bomFormat }: JsonObject): boolean => bomFormat === 'CycloneDX';

export function readCycloneDx(json: JsonObject): Sbom {
  const metadata = objectIn(json.metadata);
  const subject = objectIn(metadata.component);
  const components = flattenComponents(json.components);
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

/** Returns all components, also those inside of other components. Not recursive, because they may be nested deeply. */
function flattenComponents(value: unknown): JsonObject[] {
  const components = objectsIn(value);
  // The loop also visits what it appends. One push for each, because too many arguments of a call overflow the stack.
  for (const component of components) for (const inner of objectsIn(component.components)) components.push(inner);
  return components;
}

/** The tools are a list up to version 1.4, and since then an object with a list of components. */
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
