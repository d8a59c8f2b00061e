import { parseJson } from '../../../base/parse-json.ts';
import { readSbom } from '../../../formats/sbom/read-sbom.ts';
import type { Sbom } from '../../../formats/sbom/sbom.ts';

/** An SBOM whose lists are JSON texts of some items each: they are parsed in slices by the thread that receives them. */
export type SlicedSbom = Omit<Sbom, 'packages' | 'files' | 'relations'> & {
  readonly packages: readonly string[];
  readonly files: readonly string[];
  readonly relations: readonly string[];
};

/** An SBOM of the maximum size has some hundred thousand values. */
const MAX_VALUES = 2_000_000;
const ITEMS = 500;

/** Runs in a background thread. Returns undefined when the format is not supported. */
export function run(bytes: Uint8Array): SlicedSbom | undefined {
  let sbom: Sbom | undefined;
  try {
    sbom = readSbom(parseJson(bytes, MAX_VALUES));
  } catch {
    return undefined;
  }
  const { packages, files, relations, ...rest } = sbom ?? {};
  if (!packages || !files || !relations) return undefined;
  return {
    ...(rest as Omit<Sbom, 'packages' | 'files' | 'relations'>),
    packages: texts(packages),
    files: texts(files),
    relations: texts(relations),
  };
}

const texts = (items: readonly unknown[]): string[] =>
  Array.from({ length: Math.ceil(items.length / ITEMS) }, (_, at) =>
    JSON.stringify(items.slice(at * ITEMS, (at + 1) * ITEMS)),
  );
