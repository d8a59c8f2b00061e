/** The content of a software bill of materials that both formats can express. */
export interface Sbom {
  readonly format: 'spdx' | 'cyclonedx';
  readonly name: string;
  readonly tools: readonly string[];
  readonly authors: readonly string[];
  /** In milliseconds. */
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
  /** Empty if the package has none. */
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
