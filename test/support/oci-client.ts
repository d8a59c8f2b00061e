import { createHash } from 'node:crypto';
import { Agent, type ClientRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** As much of a registry client as tests need: it says what it sends and hides nothing of the answer. */
export interface OciClient {
  send(verb: string, path: string, options?: SendOptions): Promise<OciAnswer>;
  /** Pushes a blob as docker does, in two requests, and answers its digest. */
  pushBlob(name: string, content: Uint8Array): Promise<string>;
  /** Pushes a manifest and answers its digest. */
  pushManifest(name: string, reference: string, manifest: Manifest): Promise<string>;
  close(): void;
}

export interface SendOptions {
  readonly headers?: OutgoingHttpHeaders;
  /** Several pieces are sent one by one, without a length unless a header says it. */
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array>;
}

export interface OciAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Manifest {
  readonly mediaType: string;
  readonly bytes: Buffer;
  readonly digest: string;
}

export const INDEX = 'application/vnd.oci.image.index.v1+json';
export const IMAGE = 'application/vnd.oci.image.manifest.v1+json';
export const CONFIG = 'application/vnd.oci.image.config.v1+json';
export const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

export const digestOf = (content: Uint8Array, algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;

/** With a token as bearer, or with whatever `authorization` says. */
export function ociClient(url: string, authorization?: string): OciClient {
  const agent = new Agent({ keepAlive: true });

  async function send(verb: string, path: string, { headers = {}, body }: SendOptions = {}): Promise<OciAnswer> {
    const isWhole = typeof body === 'string' || body instanceof Uint8Array;
    const { hostname, port } = new URL(url);
    // The path goes out as it is, tricks and all.
    const outgoing = request({
      agent,
      hostname,
      port,
      path,
      method: verb,
      headers: {
        ...(authorization !== undefined && { authorization }),
        ...(isWhole && { 'content-length': Buffer.byteLength(body) }),
        ...headers,
      },
    });
    const answered = new Promise<OciAnswer>((resolve, reject) => {
      outgoing.on('error', reject);
      outgoing.on('response', (res) => {
        buffer(res).then((all) => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: all }), reject);
      });
    });
    if (body === undefined || isWhole) outgoing.end(body);
    else void sendPieces(outgoing, body);
    return answered;
  }

  async function expect(status: number, ...request: Parameters<typeof send>): Promise<OciAnswer> {
    const answer = await send(...request);
    if (answer.status === status) return answer;
    throw new Error(`${request[0]} ${request[1]} gave ${answer.status}: ${answer.body}`);
  }

  return {
    send,
    async pushBlob(name, content) {
      const digest = digestOf(content);
      const { headers } = await expect(202, 'POST', `/v2/${name}/blobs/uploads/`);
      await expect(201, 'PUT', withDigest(headers.location, digest), { body: content });
      return digest;
    },
    async pushManifest(name, reference, { bytes, mediaType, digest }) {
      const path = `/v2/${name}/manifests/${reference}`;
      await expect(201, 'PUT', path, { headers: { 'content-type': mediaType }, body: bytes });
      return digest;
    },
    close: () => agent.destroy(),
  };
}

/** A server that has heard enough closes the connection; its answer, if any, still comes. */
async function sendPieces(outgoing: ClientRequest, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const closed = new Promise((resolve) => outgoing.once('close', resolve));
  try {
    for await (const piece of pieces) {
      const isTaken = new Promise((resolve) => outgoing.write(piece, resolve));
      await Promise.race([isTaken, closed]);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy(error as Error);
  }
}

/** Where an upload is finished. */
export const withDigest = (location: string | undefined, digest: string): string =>
  `${location}${location?.includes('?') ? '&' : '?'}digest=${digest}`;

/** The codes in an OCI error body. */
export const codesIn = ({ body }: OciAnswer): string[] =>
  JSON.parse(body.toString('utf8')).errors.map(({ code }: { code: string }) => code);

export const basic = (password: string, user = 'anybody'): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** Fetches a token as docker does after a 401: from where the challenge says, for what it says. */
export async function answerChallenge(challenge: string | undefined, password: string): Promise<string> {
  const parameters = Object.fromEntries([...(challenge ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, k, v]) => [k, v]));
  const url = new URL(parameters.realm ?? '');
  url.searchParams.set('service', parameters.service ?? '');
  for (const scope of parameters.scope?.split(' ') ?? []) url.searchParams.append('scope', scope);
  const client = ociClient(url.origin, basic(password));
  try {
    const { status, body } = await client.send('GET', url.pathname + url.search);
    if (status !== 200) throw new Error(`no token: ${status} ${body}`);
    return JSON.parse(body.toString('utf8')).token;
  } finally {
    client.close();
  }
}

export const manifestOf = (value: { readonly mediaType: string }): Manifest => {
  const bytes = Buffer.from(JSON.stringify(value));
  return { mediaType: value.mediaType, bytes, digest: digestOf(bytes) };
};

export const describe = (mediaType: string, content: Uint8Array) => ({
  mediaType,
  digest: digestOf(content),
  size: content.length,
});

/** The blobs and the manifest of an image. */
export function imageOf(architecture: string, ...layers: readonly Buffer[]) {
  const config = Buffer.from(JSON.stringify({ os: 'linux', architecture, rootfs: { type: 'layers', diff_ids: [] } }));
  const manifest = manifestOf({
    schemaVersion: 2,
    mediaType: IMAGE,
    config: describe(CONFIG, config),
    layers: layers.map((layer) => describe(LAYER, layer)),
  } as { mediaType: string });
  return {
    manifest,
    blobs: [config, ...layers],
    size: [config, ...layers].reduce((sum, { length }) => sum + length, 0),
  };
}

/** An index of images for linux. */
export const indexOf = (images: Readonly<Record<string, Manifest>>): Manifest =>
  manifestOf({
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: Object.entries(images).map(([architecture, { mediaType, bytes }]) => ({
      ...describe(mediaType, bytes),
      platform: { os: 'linux', architecture },
    })),
  } as { mediaType: string });

/** A small image with content of its own. */
export async function pushImage(
  client: OciClient,
  name: string,
  tag: string,
  text = `${name}:${tag}`,
): Promise<Manifest> {
  const { manifest, blobs } = imageOf('amd64', Buffer.from(text));
  for (const blob of blobs) await client.pushBlob(name, blob);
  await client.pushManifest(name, tag, manifest);
  return manifest;
}
