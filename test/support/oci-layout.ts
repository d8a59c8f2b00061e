import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, digestOf, INDEX, type Manifest } from './oci-client.ts';

/** An image layout of the OCI image specification: how clients keep images in a directory. */
export function writeLayout(
  directory: string,
  tag: string,
  top: Manifest,
  parts: readonly { readonly manifest: Manifest; readonly blobs: readonly Buffer[] }[],
): void {
  const blobs = join(directory, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const all = [top.bytes, ...parts.flatMap(({ manifest, blobs }) => [manifest.bytes, ...blobs])];
  for (const blob of all) writeFileSync(join(blobs, digestOf(blob).slice('sha256:'.length)), blob);
  const named = { ...describe(top.mediaType, top.bytes), annotations: { 'org.opencontainers.image.ref.name': tag } };
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(
    join(directory, 'index.json'),
    JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [named] }),
  );
}

/** The blobs of a layout by their names, and the digest of its only image. */
export function readLayout(directory: string): { readonly top: string; readonly blobs: ReadonlyMap<string, Buffer> } {
  const blobs = join(directory, 'blobs/sha256');
  const { manifests } = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8'));
  return {
    top: manifests[0].digest,
    blobs: new Map(readdirSync(blobs).map((name) => [name, readFileSync(join(blobs, name))])),
  };
}
