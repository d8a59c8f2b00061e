import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { descriptorFor, digestOf, INDEX, type Manifest } from './oci-client.ts';

/** Writes an image layout (OCI image specification): the format in which clients store images in a directory. */
export function writeLayout(
  directory: string,
  tag: string,
  top: Manifest,
  images: readonly { readonly manifest: Manifest; readonly blobs: readonly Buffer[] }[],
): void {
  const blobs = join(directory, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const all = [top.bytes, ...images.flatMap(({ manifest, blobs }) => [manifest.bytes, ...blobs])];
  for (const blob of all) writeFileSync(join(blobs, digestOf(blob).slice('sha256:'.length)), blob);
  const tagged = {
    ...descriptorFor(top.mediaType, top.bytes),
    annotations: { 'org.opencontainers.image.ref.name': tag },
  };
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(
    join(directory, 'index.json'),
    JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [tagged] }),
  );
}

/** Reads a layout: its blobs by file name, and the digest of its only image. */
export function readLayout(directory: string): { readonly top: string; readonly blobs: ReadonlyMap<string, Buffer> } {
  const blobs = join(directory, 'blobs/sha256');
  const { manifests } = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8'));
  return {
    top: manifests[0].digest,
    blobs: new Map(readdirSync(blobs).map((name) => [name, readFileSync(join(blobs, name))])),
  };
}
