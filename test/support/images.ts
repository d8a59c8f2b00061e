import { createHash } from 'node:crypto';
import { linkBlob } from '../../src/domains/registry/manifests/blob-links.ts';
import { parsePushedManifest } from '../../src/domains/registry/manifests/manifest.ts';
import { putManifest } from '../../src/domains/registry/manifests/manifests.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import type { TestServer } from './server.ts';

export const OCI_IMAGE = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
export const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
export const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

/** A descriptor of the OCI image specification. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export const descriptorOf = (mediaType: string, bytes: Uint8Array | string): Descriptor => ({
  mediaType,
  digest: digestOf(bytes),
  size: Buffer.byteLength(bytes),
});

export interface PushOptions {
  readonly now?: number;
  readonly actor?: string;
  /** The content of the config blob. */
  readonly config?: string;
}

/**
 * Inserts a manifest directly into the database and returns its descriptor. Its blobs must be linked to the repo, but
 * their bytes are not needed.
 */
export async function insertManifest(
  store: Store,
  repo: string,
  manifest: { readonly mediaType: string; readonly [field: string]: unknown },
  tag?: string,
  { now = 1000, actor = 'test', config }: PushOptions = {},
): Promise<Descriptor> {
  const text = JSON.stringify({ schemaVersion: 2, ...manifest });
  const { mediaType, digest, size } = descriptorOf(manifest.mediaType, text);
  const pushed = await parsePushedManifest({ digest, mediaType, bytes: Buffer.from(text) }, async () =>
    config === undefined ? undefined : Buffer.from(config),
  );
  await store.write((db) => putManifest({ db, now, actor }, repo, pushed, tag));
  return { mediaType, digest, size };
}

export interface ImageOptions extends PushOptions {
  readonly architecture?: string;
  /** The content of the layer. Images with different content have different digests. */
  readonly content?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly subject?: Descriptor;
}

/** Inserts an image with one layer directly into the database, and links its blobs. */
export async function insertImage(
  store: Store,
  repo: string,
  tag?: string,
  { architecture = 'amd64', content = 'layer', annotations, subject, now = 1000, ...options }: ImageOptions = {},
): Promise<Descriptor & { readonly contentSize: number }> {
  const configText = JSON.stringify({ os: 'linux', architecture, made: content });
  const config = descriptorOf(OCI_CONFIG, configText);
  const layer = descriptorOf(OCI_LAYER, content);
  await store.write(async (tx) => {
    for (const { digest, size } of [config, layer]) await linkBlob(tx, repo, digest, size, now);
  });
  const manifest = {
    mediaType: OCI_IMAGE,
    config,
    layers: [layer],
    ...(annotations && { annotations }),
    ...(subject && { subject }),
  };
  const pushed = await insertManifest(store, repo, manifest, tag, { ...options, now, config: configText });
  return { ...pushed, contentSize: config.size + layer.size };
}

/** Opens the database of a running server, passes it to `run`, and closes it. */
export async function withStore<T>(server: TestServer, run: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(server.dataLocation);
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}
