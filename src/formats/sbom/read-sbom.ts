import { isObject, type JsonObject } from '../lenient-json.ts';
import { isCycloneDx, readCycloneDx } from './cyclonedx.ts';
import type { Sbom } from './sbom.ts';
import { isSpdx, readSpdx } from './spdx.ts';

export type { Sbom } from './sbom.ts';

/** Reads an SBOM of either format. Returns undefined if it has neither. */
export function readSbom(json: unknown): Sbom | undefined {
  if (!isObject(json)) return undefined;
  return readers.find(({ accepts }) => accepts(json))?.read(json);
}

const readers: readonly { accepts(json: JsonObject): boolean; read(json: JsonObject): Sbom }[] = [
  { accepts: isSpdx, read: readSpdx },
  { accepts: isCycloneDx, read: readCycloneDx },
];
