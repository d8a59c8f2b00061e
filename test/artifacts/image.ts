import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startFlags } from '../../src/cli/v8-flags.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { USER } from '../../tools/release/image.ts';
import { run } from '../../tools/release/run.ts';
import { findDatabase } from '../support/databases.ts';
import { spawnServer } from '../support/process.ts';
import { bind, type Container, type Mount, startContainer, useServer, waitUntilServing } from './container.ts';
import { requireProgram, requireRoot, runPython } from './programs.ts';
import type { Release } from './release.ts';

const MAX_BYTES = 120e6;

interface UnpackedImage {
  readonly architecture: string;
  readonly compressedBytes: number;
  readonly config: { readonly config: ImageSettings };
  /** The digests of the layers, in their order. */
  readonly layers: readonly string[];
}

interface ImageSettings {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly ExposedPorts: object;
  readonly Volumes: object;
  readonly Labels: Readonly<Record<string, string>>;
}

const blobIn = (layout: string, digest: string): string => join(layout, 'blobs', digest.replace(':', '/'));

/** Unpacks the layout, checks the digests of all blobs, and returns the images in it. */
function readImages(layout: string): UnpackedImage[] {
  for (const name of readdirSync(join(layout, 'blobs/sha256'))) {
    const bytes = readFileSync(join(layout, 'blobs/sha256', name));
    equal(createHash('sha256').update(bytes).digest('hex'), name);
  }
  const json = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
  const index = json(blobIn(layout, json(join(layout, 'index.json')).manifests[0].digest));
  return index.manifests.map(({ digest, platform }: { digest: string; platform: { architecture: string } }) => {
    const { config, layers } = json(blobIn(layout, digest));
    return {
      architecture: platform.architecture,
      compressedBytes: layers.reduce((sum: number, { size }: { size: number }) => sum + size, 0),
      config: json(blobIn(layout, config.digest)),
      layers: layers.map((layer: { digest: string }) => layer.digest),
    };
  });
}

/** Unpacks the image of the release and checks what it says about itself. */
export function unpackImage({ clone, version, artifact }: Release, scratch: string): string {
  const layout = join(scratch, 'layout');
  mkdirSync(layout);
  run('tar', ['-xf', artifact('image.tar'), '-C', layout], scratch);
  const images = readImages(layout);
  deepEqual(
    images.map(({ architecture }) => architecture),
    ['amd64', 'arm64'],
  );
  for (const { compressedBytes, config, layers } of images) {
    ok(compressedBytes < MAX_BYTES, `the image has ${compressedBytes} bytes`);
    const { Labels: labels, ...settings } = config.config;
    deepEqual(settings, {
      User: '65532:65532',
      ExposedPorts: { '8080/tcp': {} },
      Env: ['PATH=/usr/local/bin', 'WHARF_LISTEN=:8080', 'WHARF_DATA=/data'],
      Entrypoint: ['/usr/local/bin/node', ...startFlags, '/usr/local/lib/wharfinger/wharf.js'],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      WorkingDir: '/',
      StopSignal: 'SIGTERM',
    });
    equal(labels['org.opencontainers.image.version'], version);
    equal(labels['org.opencontainers.image.revision'], run('git', ['rev-parse', 'HEAD'], clone).trim());
    const paths = layers.flatMap((digest) =>
      run('tar', ['-tzf', blobIn(layout, digest)], scratch)
        .trim()
        .split('\n'),
    );
    const unexpected = paths.filter((path) =>
      /node_modules|\.ts$|\.test\.|\/(sh|bash|npm)$|\.cache|fingerprint/.test(path),
    );
    deepEqual(unexpected, []);
  }
  return layout;
}

/** The binaries of arm64 are for arm64. They cannot be run here. */
export function checkArmImage(layout: string, scratch: string): void {
  requireProgram('readelf');
  const directory = unpackRoot(layout, 'arm64', join(scratch, 'arm64'));
  for (const file of ['usr/local/bin/node', 'usr/lib/aarch64-linux-gnu/libc.so.6', 'usr/lib/ld-linux-aarch64.so.1']) {
    match(run('readelf', ['--file-header', join(directory, file)], scratch), /Machine: +AArch64/);
  }
}

/** The SBOM in the image is the one beside it, is valid SPDX, and names what the image contains. */
export function checkSbom({ artifact, version }: Release, layout: string, scratch: string): void {
  const file = artifact('image-linux-amd64.spdx.json');
  const directory = unpackRoot(layout, 'amd64', join(scratch, 'sbom'));
  equal(readFileSync(join(directory, 'usr/share/doc/wharfinger/sbom.spdx.json'), 'utf8'), readFileSync(file, 'utf8'));
  const { packages } = JSON.parse(readFileSync(file, 'utf8'));
  const named = new Map(
    packages.map((found: { name: string; versionInfo: string }) => [found.name, found.versionInfo]),
  );
  equal(named.get('wharfinger'), version);
  equal(`v${named.get('node')}`, run(join(directory, 'usr/local/bin/node'), ['--version'], scratch).trim());
  const status = readFileSync(join(directory, 'var/lib/dpkg/status.d/libc6'), 'utf8');
  equal(named.get('libc6'), /^Version: (.*)$/m.exec(status)?.[1]);
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  for (const [name, expected] of Object.entries(dependencies))
    if (name !== 'node') equal(named.get(name), expected, name);
  runPython('spdx_tools.spdx.clitools.pyspdxtools', ['--infile', file]);
}

/** What a pod or a command adds to the image. */
interface RunOptions {
  readonly env?: readonly string[];
  readonly mounts: readonly Mount[];
}

/** Runs the image for this machine with runc: as its own user, on a read-only root. */
export function startImage(layout: string, directory: string, { env = [], mounts }: RunOptions): Container {
  for (const name of ['runc', 'tar']) requireProgram(name);
  requireRoot();
  const settings = readImages(layout).find((found) => found.architecture === 'amd64')?.config.config as ImageSettings;
  return startContainer({
    directory,
    rootfs: unpackRoot(layout, 'amd64', `${directory}-root`),
    args: [...settings.Entrypoint, ...settings.Cmd],
    env: [...settings.Env, ...env],
    cwd: settings.WorkingDir,
    uid: Number(settings.User.split(':')[0]),
    mounts: [{ destination: '/proc', type: 'proc', source: 'proc', options: [] }, ...mounts],
  });
}

/** The image serves with a volume, and stops when told. */
export async function runImage(layout: string, scratch: string): Promise<void> {
  const data = join(scratch, 'image-data');
  mkdirSync(data, { mode: 0o700 });
  chownSync(data, USER, USER);
  const container = startImage(layout, join(scratch, 'image'), { mounts: [bind(data, '/data', 'rw')] });
  try {
    await waitUntilServing(container);
    equal(responseStatus(container, '/healthz'), '200');
    match(container.exec(['node', '-p', 'process.getuid()']), /^65532$/m);
    useServer(container, 'wharf');
    equal(await container.stop(), 0, container.output());
    match(container.output(), /"message":"stopped"/);
    ok(readdirSync(data).includes('wharfinger.db'));
  } finally {
    container.remove();
  }
}

/** The status of a response of the server in a container of the image. */
export const responseStatus = (container: Container, path: string, port = 8080): string =>
  container.exec(['node', '-e', `fetch('http://127.0.0.1:${port}${path}').then((r) => console.log(r.status))`]).trim();

/** The image is pushed to a server and pulled again, with all platforms, byte for byte. */
export async function pushImage({ artifact, version }: Release, scratch: string): Promise<void> {
  requireProgram('skopeo');
  const location = await findDatabase().createDataLocation();
  const server = await spawnServer(location);
  try {
    const remote = `docker://${new URL(server.url).host}/my-org/wharfinger:${version}`;
    const password = await mintOwnerToken(location.dataDir);
    const copy = (from: string, to: string, side: 'src' | 'dest') =>
      run(
        'skopeo',
        ['copy', '--quiet', '--all', `--${side}-tls-verify=false`, `--${side}-creds=any:${password}`, from, to],
        scratch,
      );
    copy(`oci-archive:${artifact('image.tar')}:${version}`, remote, 'dest');
    copy(remote, `oci:${join(scratch, 'pulled')}:${version}`, 'src');
    const blobs = (directory: string) => readdirSync(join(directory, 'blobs/sha256')).sort();
    deepEqual(blobs(join(scratch, 'pulled')), blobs(join(scratch, 'layout')));
    readImages(join(scratch, 'pulled'));
    const dockerArchive = `docker-archive:${artifact('image.tar')}:docker.io/library/wharfinger:${version}-amd64`;
    match(run('skopeo', ['inspect', dockerArchive], scratch), /"Architecture": "amd64"/);
  } finally {
    await server.stop();
    await location.remove();
  }
}

/** Unpacks the layers of an image into a directory, with owners if this process is root. */
function unpackRoot(layout: string, architecture: string, directory: string): string {
  mkdirSync(directory);
  const image = readImages(layout).find((found) => found.architecture === architecture);
  for (const digest of image?.layers ?? []) {
    run('tar', ['-xzf', blobIn(layout, digest), '--numeric-owner', '-C', directory], directory);
  }
  return directory;
}
