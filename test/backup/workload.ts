import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import type { DataLocation } from '../support/databases.ts';
import { basicAuth, buildImage, type OciClient, ociClient } from '../support/oci-client.ts';
import { type Client, grpcClient } from '../support/wires.ts';

const { createGroup, getGroup } = GroupsService.method;

/** What a server has acknowledged, with the time when the client got the response. */
interface Acknowledged {
  readonly at: number;
}

interface PushedImage extends Acknowledged {
  readonly tag: string;
  readonly manifest: Buffer;
  readonly blobs: readonly { readonly digest: string; readonly content: Buffer }[];
}

export interface Workload {
  readonly groups: readonly (Acknowledged & { readonly uid: string; readonly name: string })[];
  readonly images: readonly PushedImage[];
  /** Returns how many groups were created so far. Rejects if a request has failed. */
  count(): Promise<number>;
  /** Ends the clients. Requests that fail after the server was killed are not counted. */
  stop(): Promise<void>;
}

const REPO = 'my-org/backup';
const WRITERS = 8;
const PUSHERS = 2;
const MAX_LAYER = 300_000;

/** Creates `rate` groups a second and pushes images, until `stop`. */
export async function startWorkload(url: string, { dataDir }: DataLocation, rate: number): Promise<Workload> {
  const token = await mintOwnerToken(dataDir);
  const organization = (await readOwner(dataDir))?.organization ?? '';
  const groups: { at: number; uid: string; name: string }[] = [];
  const images: PushedImage[] = [];
  let isStopping = false;
  let started = 0;
  const begun = performance.now();

  async function write(client: Client): Promise<void> {
    while (!isStopping) {
      const turn = started++;
      const dueInMs = begun + (turn * 1000) / rate - performance.now();
      if (dueInMs > 0) await delay(dueInMs);
      if (isStopping) return;
      const name = `group ${turn}`;
      const { uid } = await client.call(createGroup, { parent: organization, group: { name } });
      groups.push({ at: Date.now(), uid, name });
    }
  }

  async function push(client: OciClient, pusher: number): Promise<void> {
    for (let turn = 0; !isStopping; turn++) {
      images.push(await pushRandomImage(client, `${pusher}-${turn}`));
    }
  }

  const untilKilled = (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => {
      if (!isStopping) throw error;
    });
  const apis = Array.from({ length: WRITERS }, () => grpcClient(url, token, { 'grpc.use_local_subchannel_pool': 1 }));
  const registries = Array.from({ length: PUSHERS }, () => ociClient(url, basicAuth(token)));
  const clients = Promise.all([
    ...apis.map((client) => untilKilled(write(client))),
    ...registries.map((client, at) => untilKilled(push(client, at))),
  ]);
  let failure: unknown;
  // Awaited by `stop`.
  clients.catch((error: unknown) => {
    failure = error;
  });
  return {
    groups,
    images,
    async count() {
      if (failure !== undefined) throw failure;
      return groups.length;
    },
    async stop() {
      isStopping = true;
      await clients;
      for (const client of [...apis, ...registries]) client.close();
    },
  };
}

/** Pushes an image with two random layers. */
export async function pushRandomImage(client: OciClient, tag: string): Promise<PushedImage> {
  const layers = [randomBytes(Math.ceil(Math.random() * MAX_LAYER)), randomBytes(1_000)];
  const { manifest, blobs } = buildImage('amd64', ...layers);
  const digests: { digest: string; content: Buffer }[] = [];
  for (const content of blobs) digests.push({ digest: await client.pushBlob(REPO, content), content });
  await client.pushManifest(REPO, tag, manifest);
  return { at: Date.now(), tag, manifest: manifest.bytes, blobs: digests };
}

/** Fails if a server lacks something that was acknowledged before `moment`. Returns how much there was. */
export async function requireAcknowledged(
  url: string,
  { dataDir }: DataLocation,
  { groups, images }: Pick<Workload, 'groups' | 'images'>,
  moment: number,
): Promise<{ groups: number; images: number }> {
  const token = await mintOwnerToken(dataDir);
  const api = grpcClient(url, token);
  const registry = ociClient(url, basicAuth(token));
  try {
    const expectedGroups = groups.filter(({ at }) => at < moment);
    for (let from = 0; from < expectedGroups.length; from += 50) {
      const some = expectedGroups.slice(from, from + 50);
      const found = await Promise.all(some.map(({ uid }) => api.call(getGroup, { uid })));
      assert.deepEqual(
        found.map(({ name }) => name),
        some.map(({ name }) => name),
      );
    }
    const expectedImages = images.filter(({ at }) => at < moment);
    for (const image of expectedImages) await requireImage(registry, image);
    return { groups: expectedGroups.length, images: expectedImages.length };
  } finally {
    api.close();
    registry.close();
  }
}

async function requireImage(registry: OciClient, { tag, manifest, blobs }: PushedImage): Promise<void> {
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const pulled = await registry.send('GET', `/v2/${REPO}/manifests/${tag}`, { headers: { accept } });
  assert.equal(pulled.status, 200, `the manifest ${tag}: ${pulled.body}`);
  assert.ok(pulled.body.equals(manifest), `the manifest ${tag} has other bytes`);
  for (const { digest, content } of blobs) {
    const { status, body } = await registry.send('GET', `/v2/${REPO}/blobs/${digest}`);
    assert.equal(status, 200, `the blob ${digest} of ${tag}: ${body}`);
    assert.ok(body.equals(content), `the blob ${digest} of ${tag} has other bytes`);
  }
}

export async function requireConsistent(location: DataLocation): Promise<void> {
  const store = await openStore(location);
  try {
    await assertConsistent(store.reader);
  } finally {
    await store.close();
  }
}
