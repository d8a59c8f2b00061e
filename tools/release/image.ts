import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { startFlags } from '../../src/cli/v8-flags.ts';
import type { Bundle } from './bundle.ts';
import type { DebianPackage } from './debian-packages.ts';
import type { NodeRuntime } from './node-runtime.ts';
import type { Platform } from './platforms.ts';
import type { Source } from './source.ts';
import { below, fileEntry, type TarEntry, tarOf } from './tar.ts';

export const USER = 65532;
const PROGRAM = '/usr/local/lib/wharfinger/wharf.js';

/** The same in every release, so that a layer whose files have not changed keeps its digest. */
const LAYER_TIME = new Date(0);

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

/** The image of one platform. */
export interface Image {
  readonly platform: Platform;
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layers: readonly Blob[];
}

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly bytes: Buffer;
}

/**
 * Builds the image of a platform without a container engine: Debian's C and C++ libraries, Node and the bundle, each in
 * a layer of its own, so that an upgrade transfers only the layers that have changed. It has no shell.
 */
export async function buildImage(
  platform: Platform,
  bundle: Bundle,
  node: NodeRuntime,
  debian: readonly DebianPackage[],
  sbom: string,
  source: Source,
): Promise<Image> {
  const contents = [systemFiles(debian), nodeFiles(node), serverFiles(bundle, sbom)];
  const tars = contents.map((entries) => tarOf(entries, LAYER_TIME));
  const layers = await Promise.all(tars.map(async (tar) => blobOf(LAYER, await promisify(gzip)(tar, { level: 6 }))));
  const config = jsonBlob(CONFIG, {
    created: source.time.toISOString(),
    architecture: platform.architecture,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '8080/tcp': {} },
      Env: ['PATH=/usr/local/bin', 'WHARF_LISTEN=:8080', 'WHARF_DATA=/data'],
      Entrypoint: ['/usr/local/bin/node', ...startFlags, PROGRAM],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      WorkingDir: '/',
      StopSignal: 'SIGTERM',
      Labels: labelsOf(source),
    },
    rootfs: { type: 'layers', diff_ids: tars.map(digestOf) },
    history: ['Debian libraries', `Node ${node.version}`, `Wharfinger ${source.version}`].map((created_by) => ({
      created: source.time.toISOString(),
      created_by,
    })),
  });
  const manifest = jsonBlob(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptorOf(config),
    layers: layers.map(descriptorOf),
    annotations: labelsOf(source),
  });
  return { platform, manifest, config, layers };
}

/**
 * Returns an archive with the images of all platforms: an OCI image layout, which also has the manifest.json of
 * `docker save`, so that skopeo, podman, crane and `docker load` can read it.
 */
export function imageArchive(images: readonly Image[], source: Source): Buffer {
  const index = jsonBlob(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: images.map(({ manifest, platform: { architecture } }) => ({
      ...descriptorOf(manifest),
      platform: { architecture, os: 'linux' },
    })),
    annotations: labelsOf(source),
  });
  const tagOf = ({ architecture }: Platform) => `${source.version}-${architecture}`;
  const manifests = [
    named(index, source.version),
    ...images.map(({ manifest, platform }) => named(manifest, tagOf(platform))),
  ];
  const blobs = [index, ...images.flatMap(({ manifest, config, layers }) => [manifest, config, ...layers])];
  return tarOf(
    [
      fileEntry('oci-layout', JSON.stringify({ imageLayoutVersion: '1.0.0' })),
      fileEntry('index.json', JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests })),
      fileEntry(
        'manifest.json',
        JSON.stringify(
          images.map(({ platform, config, layers }) => ({
            Config: pathOf(config),
            RepoTags: [`wharfinger:${tagOf(platform)}`],
            Layers: layers.map(pathOf),
          })),
        ),
      ),
      ...blobs.map((blob) => fileEntry(pathOf(blob), blob.bytes)),
    ],
    source.time,
  );
}

/** The descriptor of an image in a layout. The second annotation is the name by which containerd loads it. */
const named = (blob: Blob, tag: string) => ({
  ...descriptorOf(blob),
  annotations: {
    'org.opencontainers.image.ref.name': tag,
    'io.containerd.image.name': `docker.io/library/wharfinger:${tag}`,
  },
});

/** The libraries, the user and what a program expects of a Linux system. */
const systemFiles = (debian: readonly DebianPackage[]): TarEntry[] => [
  ...debian.flatMap(({ files }) => files),
  // Scanners read the packages of images without dpkg here.
  ...debian.map(({ name, control }) => fileEntry(`var/lib/dpkg/status.d/${name}`, `${control.trimEnd()}\n`)),
  fileEntry('etc/passwd', `root:x:0:0::/:/nonexistent\nwharfinger:x:${USER}:${USER}::/:/nonexistent\n`),
  fileEntry('etc/group', `root:x:0:\nwharfinger:x:${USER}:\n`),
  fileEntry('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
  ...['dev', 'proc', 'sys', 'run'].map((path): TarEntry => ({ path, mode: 0o755, content: 'directory' })),
  { path: 'tmp', mode: 0o1777, content: 'directory' },
  { path: 'data', mode: 0o700, uid: USER, content: 'directory' },
];

const nodeFiles = ({ program, licence }: NodeRuntime): TarEntry[] => [
  { path: 'usr/local/bin/node', mode: 0o755, content: program },
  fileEntry('usr/share/doc/node/LICENSE', licence),
];

const serverFiles = ({ files }: Bundle, sbom: string): TarEntry[] => [
  ...below(PROGRAM.slice(1, PROGRAM.lastIndexOf('/')), files),
  fileEntry('usr/local/bin/wharf', COMMAND, 0o755),
  fileEntry('usr/share/doc/wharfinger/sbom.spdx.json', sbom),
];

/** `wharf` for `docker exec` and `kubectl exec`: without a shell, and a shebang can pass one flag only. */
const COMMAND = `#!/usr/local/bin/node --disable-sigusr1
import('${PROGRAM}');
`;

const labelsOf = ({ version, commit, time }: Source): Record<string, string> => ({
  'org.opencontainers.image.title': 'Wharfinger',
  'org.opencontainers.image.description': 'Identity and access management, container registry and events',
  'org.opencontainers.image.licenses': 'Apache-2.0',
  'org.opencontainers.image.version': version,
  'org.opencontainers.image.revision': commit,
  'org.opencontainers.image.created': time.toISOString(),
});

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const blobOf = (mediaType: string, bytes: Buffer): Blob => ({ mediaType, digest: digestOf(bytes), bytes });
const jsonBlob = (mediaType: string, value: unknown): Blob => blobOf(mediaType, Buffer.from(JSON.stringify(value)));
const descriptorOf = ({ mediaType, digest, bytes }: Blob) => ({ mediaType, digest, size: bytes.length });
const pathOf = ({ digest }: Blob): string => `blobs/${digest.replace(':', '/')}`;
