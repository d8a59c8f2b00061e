import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pack } from '../pack.ts';
import { buildArchive } from './archive.ts';
import { type Bundle, buildBundle } from './bundle.ts';
import { downloadDebianPackages } from './debian-packages.ts';
import { buildChart, buildCompose } from './deploy-files.ts';
import { buildImage, imageArchive } from './image.ts';
import type { Material } from './material.ts';
import { nodeRuntimeFor } from './node-runtime.ts';
import { platforms } from './platforms.ts';
import { sbomOf } from './sbom.ts';
import type { Source } from './source.ts';

/** The files that a builder has written, and what they contain besides the bundle. */
export interface Built {
  readonly files: readonly string[];
  readonly materials: readonly Material[];
}

/** Builds one kind of artifact into the output directory. */
type Builder = (source: Source, bundle: Bundle) => Promise<Built>;

const builders = {
  npm: async ({ outputDirectory }) => ({ files: [await pack(outputDirectory)], materials: [] }),

  image: async (source, bundle) => {
    const debianPackagesFor = downloadDebianPackages(source);
    const contents = platforms.map((platform) => {
      const node = nodeRuntimeFor(platform, source);
      const debian = debianPackagesFor(platform);
      const name = `image-linux-${platform.architecture}`;
      const sbom = sbomOf(name, platform, { npm: bundle.packages, node, debian }, source);
      return { platform, node, debian, name, sbom };
    });
    const images = await Promise.all(
      contents.map(({ platform, node, debian, sbom }) => buildImage(platform, bundle, node, debian, sbom, source)),
    );
    return write(
      source,
      [
        { name: 'image.tar', content: imageArchive(images, source) },
        ...contents.map(({ name, sbom }) => ({ name: `${name}.spdx.json`, content: Buffer.from(sbom) })),
      ],
      contents.flatMap(({ node, debian }) => [node, ...debian].map(({ material }) => material)),
    );
  },

  archives: async (source, bundle) => {
    const archives = platforms.map(async (platform) => {
      const node = nodeRuntimeFor(platform, source);
      const sbom = sbomOf(platform.name, platform, { npm: bundle.packages, node, debian: [] }, source);
      const content = await buildArchive(platform, bundle, node, sbom, source);
      return { name: `${platform.name}.tar.gz`, content, material: node.material };
    });
    const built = await Promise.all(archives);
    return write(
      source,
      built,
      built.map(({ material }) => material),
    );
  },

  chart: async (source) => write(source, [{ name: 'chart.tgz', content: await buildChart(source) }]),

  compose: async (source) => write(source, [{ name: 'compose.tar.gz', content: await buildCompose(source) }]),
} as const satisfies Record<string, Builder>;

export type ArtifactName = keyof typeof builders;
export const artifactNames = Object.keys(builders) as readonly ArtifactName[];

/** Builds artifacts one after the other, and calls `report` with each file and its size. */
export async function buildArtifacts(
  names: readonly ArtifactName[],
  source: Source,
  report: (file: string, bytes: number) => void,
): Promise<Built> {
  const bundle = await buildBundle(source);
  const files: string[] = [];
  const materials = new Map(bundle.packages.map(({ material }) => [material.uri, material]));
  for (const name of names) {
    const built = await builders[name](source, bundle);
    for (const file of built.files) report(file, statSync(file).size);
    files.push(...built.files);
    for (const material of built.materials) materials.set(material.uri, material);
  }
  return { files, materials: [...materials.values()] };
}

/** Writes files into the output directory. Their names begin with the name and version of the product. */
function write(
  { outputDirectory, version }: Source,
  files: readonly { readonly name: string; readonly content: Buffer }[],
  materials: readonly Material[] = [],
): Built {
  mkdirSync(outputDirectory, { recursive: true });
  const paths = files.map(({ name, content }) => {
    const path = join(outputDirectory, `wharfinger-${version}-${name}`);
    writeFileSync(path, content);
    return path;
  });
  return { files: paths, materials };
}
