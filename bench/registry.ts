/** Pulls and pushes against Debian's docker-registry, in turn on the same machine. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { mintOwnerToken } from '../src/identity/owner/owner-key.ts';
import { databases } from '../test/support/databases.ts';
import {
  answerChallenge,
  digestOf,
  type OciClient,
  ociClient,
  pushImage,
  withDigest,
} from '../test/support/oci-client.ts';
import { spawnServer } from '../test/support/process.ts';
import { isInstalled, startDockerRegistry } from './lib/docker-registry.ts';
import { httpLoad } from './lib/load.ts';
import { type Result, runAlone, type Suite, short } from './lib/result.ts';
import { type Compared, interleaved, warmAndCompare } from './lib/rounds.ts';

const NAME = 'my-org/bench';
const TAG = 'latest';
const BLOB = 64 * 1024 * 1024;
const MIB = 1024 * 1024;
const ROUNDS = 5;

interface Contender {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly client: OciClient;
}

/** With one image to pull, and one large blob. */
async function prepared(url: string, authorization: string | undefined, blob: Buffer): Promise<Contender> {
  const client = ociClient(url, authorization);
  await pushImage(client, NAME, TAG);
  await client.pushBlob(NAME, blob);
  return { url, client, headers: authorization === undefined ? {} : { authorization } };
}

/** A server as everybody starts it, on the embedded database. */
async function startOurs() {
  const [database] = databases;
  if (!database) throw new Error('there is no database');
  const home = await database.home();
  const server = await spawnServer(home);
  const stop = async () => {
    await server.stop();
    await home.remove();
  };
  return { url: server.url, password: await mintOwnerToken(home.dataDir), stop };
}

/** Docker asks without a token first, and goes on with one for this repo alone. */
async function logIn(url: string, password: string): Promise<string> {
  const nobody = ociClient(url);
  try {
    const { headers } = await nobody.send('POST', `/v2/${NAME}/blobs/uploads/`);
    return `Bearer ${await answerChallenge(headers['www-authenticate'], password)}`;
  } finally {
    nobody.close();
  }
}

/** MiB per second. Read into the same memory again and again: a client that stores what it gets would cost more than the server. */
function pull({ url, headers }: Contender, digest: string): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const lines = Object.entries({ host, connection: 'close', ...headers }).map(
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
      socket.write(`GET /v2/${NAME}/blobs/${digest} HTTP/1.1\r\n${lines.join('')}\r\n`),
    );
    socket.on('error', reject);
    socket.on('close', () => {
      if (received < BLOB) reject(new Error(`${received} bytes came`));
      else resolve(perSecond(started));
    });
  });
}

const perSecond = (started: number): number => BLOB / MIB / ((performance.now() - started) / 1000);

/** MiB per second, in two requests as docker does. The digest is known before. */
async function push({ client }: Contender, blob: Buffer, digest: string): Promise<number> {
  const started = performance.now();
  const { headers } = await client.send('POST', `/v2/${NAME}/blobs/uploads/`);
  const { status, body } = await client.send('PUT', withDigest(headers.location, digest), { body: blob });
  if (status !== 201) throw new Error(`push gave ${status}: ${body}`);
  return perSecond(started);
}

async function compare(ours: Contender, theirs: Contender, blob: Buffer, digest: string): Promise<Result[]> {
  const getManifest = ({ url, headers }: Contender, seconds: number) => {
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    return httpLoad({ url, path: `/v2/${NAME}/manifests/${TAG}`, headers: { ...headers, accept } }, { seconds });
  };
  /** A blob that neither has. */
  const pushFresh = (to: Contender) => {
    blob.set(randomBytes(16));
    return push(to, blob, digestOf(blob));
  };
  return [
    result(
      'manifest GET by tag',
      3,
      '/s',
      await warmAndCompare(
        (seconds) => getManifest(ours, seconds),
        (seconds) => getManifest(theirs, seconds),
      ),
    ),
    result(
      'pull of a blob of 64 MiB',
      0.65,
      ' MiB/s',
      await interleaved(
        ROUNDS,
        () => pull(ours, digest),
        () => pull(theirs, digest),
      ),
    ),
    result(
      'push of a blob of 64 MiB',
      1,
      ' MiB/s',
      await interleaved(
        ROUNDS,
        () => pushFresh(ours),
        () => pushFresh(theirs),
      ),
    ),
  ];
}

const result = (benchmark: string, atLeast: number, unit: string, { ratio, a, b }: Compared): Result => ({
  benchmark,
  baseline: 'docker-registry',
  value: ratio,
  unit: 'times',
  bar: { atLeast },
  figures: `${short(a)}${unit} against ${short(b)}${unit}`,
});

export const registry: Suite = async (print) => {
  if (!isInstalled()) {
    print(
      'registry: skipped, because docker-registry is not installed (Debian and Ubuntu: apt install docker-registry)',
    );
    return [];
  }
  const blob = randomBytes(BLOB);
  const digest = digestOf(blob);
  const server = await startOurs();
  const other = await startDockerRegistry();
  const contenders: Contender[] = [];
  try {
    const ours = await prepared(server.url, await logIn(server.url, server.password), blob);
    contenders.push(ours);
    const theirs = await prepared(other.url, undefined, blob);
    contenders.push(theirs);
    return await compare(ours, theirs, blob, digest);
  } finally {
    for (const { client } of contenders) client.close();
    await other.stop();
    await server.stop();
  }
};

if (import.meta.main) await runAlone(registry);
