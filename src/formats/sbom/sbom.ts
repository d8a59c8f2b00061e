import { isObject, type JsonObject } from '../lenient.ts';
import { isCycloneDx, readCycloneDx } from './cyclonedx.ts';
import { isSpdx, readSpdx } from './spdx.ts';

/** What a bill of materials says, as far as both formats can say it. */
export interface Sbom {
  readonly format: 'spdx' | 'cyclonedx';
  readonly name: string;
  readonly tools: readonly string[];
  readonly authors: readonly string[];
  readonly created: number | undefined;
  readonly packages: readonly SbomPackage[];
  readonly files: readonly SbomFile[];
  readonly relations: readonly SbomRelation[];
}

export interface SbomPackage {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly description: string;
  /** Empty when it has none. */
  readonly purl: string;
}

export interface SbomFile {
  readonly id: string;
  readonly name: string;
  readonly types: readonly string[];
}

export interface SbomRelation {
  readonly from: string;
  readonly type: 'describes' | 'contains' | 'depends on' | 'generated from';
  readonly to: string;
}

/** Reads either format; nothing when it is neither. */
export function readSbom(json: unknown): Sbom | undefined {
  if (!isObject(json)) return undefined;
  return readers.find(({ fits }) => fits(json))?.read(json);
}

const readers: readonly { fits(json: JsonObject): boolean; read(json: JsonObject): Sbom }[] = [
  { fits: isSpdx, read: readSpdx },
  { fits: isCycloneDx, read: readCycloneDx },
];
