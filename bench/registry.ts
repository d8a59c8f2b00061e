/** Pulls and pushes, compared with the docker-registry of Debian on the same machine. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { mintOwnerToken } from '../src/identity/owner/owner-key.ts';
import { databases } from '../test/support/databases.ts';
import {
  digestOf,
  fetchTokenForChallenge,
  type OciClient,
  ociClient,
  pushImage,
  withDigest,
} from '../test/support/oci-client.ts';
import { spawnServer } from '../test/support/process.ts';
import { type Comparison, compareInTurn, warmUpAndCompare } from './lib/compare.ts';
import { isInstalled, startDockerRegistry } from './lib/docker-registry.ts';
import { httpLoad } from './lib/load.ts';
import { type BenchmarkResult, formatFigure, runSuite, type Suite } from './lib/result.ts';

const NAME = 'my-org/bench';
const TAG = 'latest';
const BLOB_SIZE = 64 * 1024 * 1024;
const MIB = 1024 * 1024;
const ROUNDS = 5;

/** A registry to measure, and a client of it. */
interface MeasuredRegistry {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly client: OciClient;
}

/** Pushes one image and one large blob to a registry. */
async function prepareRegistry(
  url: string,
  authorization: string | undefined,
  blob: Buffer,
): Promise<MeasuredRegistry> {
  const client = ociClient(url, authorization);
  await pushImage(client, NAME, TAG);
  await client.pushBlob(NAME, blob);
  return { url, client, headers: authorization === undefined ? {} : { authorization } };
}

/** Starts a Wharfinger server on SQLite. */
async function startWharfinger() {
  const [database] = databases;
  if (!database) throw new Error('no database is defined');
  const location = await database.createDataLocation();
  const server = await spawnServer(location);
  const stop = async () => {
    await server.stop();
    await location.remove();
  };
  return { url: server.url, password: await mintOwnerToken(location.dataDir), stop };
}

/** Fetches a token as docker does: an anonymous request returns a challenge for a token of this repo. */
async function fetchToken(url: string, password: string): Promise<string> {
  const anonymous = ociClient(url);
  try {
    const { headers } = await anonymous.send('POST', `/v2/${NAME}/blobs/uploads/`);
    return `Bearer ${await fetchTokenForChallenge(headers['www-authenticate'], password)}`;
  } finally {
    anonymous.close();
  }
}

/**
 * Pulls a blob and returns MiB per second. It reads into one reused buffer, because a client that stores the bytes
 * would use more processor time than the server.
 */
function pull({ url, headers }: MeasuredRegistry, digest: string): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const headerLines = Object.entries({ host, connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const started = performance.now();
  let received = 0;
  const callback = (length: number): boolean => {
    received += length;
    return true;
  };
  return new Promise((resolve, reject) => {
    const onread = { buffer: Buffer.alloc(MIB), callback };
    const socket = connect({ host, port: Number(port), onread }, () =>
      socket.write(`GET /v2/${NAME}/blobs/${digest} HTTP/1.1\r\n${headerLines.join('')}\r\n`),
    );
    socket.on('error', reject);
    socket.on('close', () => {
      if (received < BLOB_SIZE) reject(new Error(`received only ${received} bytes`));
      else resolve(mebibytesPerSecond(started));
    });
  });
}

const mebibytesPerSecond = (started: number): number => BLOB_SIZE / MIB / ((performance.now() - started) / 1000);

/** Pushes a blob in two requests, as docker does, and returns MiB per second. */
async function push({ client }: MeasuredRegistry, blob: Buffer, digest: string): Promise<number> {
  const started = performance.now();
  const { headers } = await client.send('POST', `/v2/${NAME}/blobs/uploads/`);
  const { status, body } = await client.send('PUT', withDigest(headers.location, digest), { body: blob });
  if (status !== 201) throw new Error(`the push returned ${status}: ${body}`);
  return mebibytesPerSecond(started);
}

async function compare(
  wharfinger: MeasuredRegistry,
  other: MeasuredRegistry,
  blob: Buffer,
  digest: string,
): Promise<BenchmarkResult[]> {
  const getManifest = ({ url, headers }: MeasuredRegistry, seconds: number) => {
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    return httpLoad({ url, path: `/v2/${NAME}/manifests/${TAG}`, headers: { ...headers, accept } }, { seconds });
  };
  /** Pushes a blob that neither registry has. */
  const pushNewBlob = (to: MeasuredRegistry) => {
    blob.set(randomBytes(16));
    return push(to, blob, digestOf(blob));
  };
  return [
    result(
      'manifest GET by tag',
      3,
      '/s',
      await warmUpAndCompare(
        (seconds) => getManifest(wharfinger, seconds),
        (seconds) => getManifest(other, seconds),
      ),
    ),
    result(
      'pull of a blob of 64 MiB',
      0.65,
      ' MiB/s',
      await compareInTurn(
        ROUNDS,
        () => pull(wharfinger, digest),
        () => pull(other, digest),
      ),
    ),
    result(
      'push of a blob of 64 MiB',
      1,
      ' MiB/s',
      await compareInTurn(
        ROUNDS,
        () => pushNewBlob(wharfinger),
        () => pushNewBlob(other),
      ),
    ),
  ];
}

const result = (benchmark: string, atLeast: number, unit: string, { ratio, a, b }: Comparison): BenchmarkResult => ({
  benchmark,
  baseline: 'docker-registry',
  value: ratio,
  unit: 'times',
  limit: { atLeast },
  figures: `${formatFigure(a)}${unit} against ${formatFigure(b)}${unit}`,
});

export const registry: Suite = async (print) => {
  if (!isInstalled()) {
    print(
      'registry: SKIPPED, because docker-registry is not installed (Debian and Ubuntu: apt install docker-registry)',
    );
    return [];
  }
  const blob = randomBytes(BLOB_SIZE);
  const digest = digestOf(blob);
  const server = await startWharfinger();
  const dockerRegistry = await startDockerRegistry();
  const registries: MeasuredRegistry[] = [];
  try {
    const wharfinger = await prepareRegistry(server.url, await fetchToken(server.url, server.password), blob);
    registries.push(wharfinger);
    const other = await prepareRegistry(dockerRegistry.url, undefined, blob);
    registries.push(other);
    return await compare(wharfinger, other, blob, digest);
  } finally {
    for (const { client } of registries) client.close();
    await dockerRegistry.stop();
    await server.stop();
  }
};

if (import.meta.main) await runSuite(registry);
