import { createHash } from 'node:crypto';
import { Agent, type ClientRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** A minimal registry client. It sends requests exactly as given and returns the complete response. */
export interface OciClient {
  send(verb: string, path: string, options?: SendOptions): Promise<OciResponse>;
  /** Pushes a blob in two requests, as docker does, and returns its digest. */
  pushBlob(name: string, content: Uint8Array): Promise<string>;
  /** Pushes a manifest and returns its digest. */
  pushManifest(name: string, reference: string, manifest: Manifest): Promise<string>;
  close(): void;
}

export interface SendOptions {
  readonly headers?: OutgoingHttpHeaders;
  /** An iterable is sent chunk by chunk, without a content-length unless `headers` has one. */
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array>;
}

export interface OciResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Manifest {
  readonly mediaType: string;
  readonly bytes: Buffer;
  readonly digest: string;
}

/** Media types. */
export const INDEX = 'application/vnd.oci.image.index.v1+json';
export const IMAGE = 'application/vnd.oci.image.manifest.v1+json';
export const CONFIG = 'application/vnd.oci.image.config.v1+json';
export const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

export const digestOf = (content: Uint8Array, algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;

/** Creates a client that sends `authorization` with every request, or no credentials. */
export function ociClient(url: string, authorization?: string): OciClient {
  const agent = new Agent({ keepAlive: true });

  async function send(verb: string, path: string, { headers = {}, body }: SendOptions = {}): Promise<OciResponse> {
    const isWhole = typeof body === 'string' || body instanceof Uint8Array;
    const { hostname, port } = new URL(url);
    // `request` takes the path as it is: a URL object would normalize the paths that tests of attacks send.
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
    const response = new Promise<OciResponse>((resolve, reject) => {
      outgoing.on('error', reject);
      outgoing.on('response', (res) => {
        buffer(res).then((all) => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: all }), reject);
      });
    });
    if (body === undefined || isWhole) outgoing.end(body);
    else void sendChunks(outgoing, body);
    return response;
  }

  async function expect(status: number, ...request: Parameters<typeof send>): Promise<OciResponse> {
    const response = await send(...request);
    if (response.status === status) return response;
    throw new Error(`${request[0]} ${request[1]} returned ${response.status}: ${response.body}`);
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

/** Sends chunks until the server closes the connection, which it may do after an early response. */
async function sendChunks(outgoing: ClientRequest, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const closed = new Promise((resolve) => outgoing.once('close', resolve));
  try {
    for await (const chunk of chunks) {
      const written = new Promise((resolve) => outgoing.write(chunk, resolve));
      await Promise.race([written, closed]);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy(error as Error);
  }
}

/** The URL of the request that finishes an upload. */
export const withDigest = (location: string | undefined, digest: string): string =>
  `${location}${location?.includes('?') ? '&' : '?'}digest=${digest}`;

/** The error codes in the body of an OCI error response. */
export const errorCodesIn = ({ body }: OciResponse): string[] =>
  JSON.parse(body.toString('utf8')).errors.map(({ code }: { code: string }) => code);

export const basicAuth = (password: string, user = 'any-user'): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** Fetches a token as docker does after a 401: from the realm and for the scope of the challenge. */
export async function fetchTokenForChallenge(challenge: string | undefined, password: string): Promise<string> {
  const parameters = Object.fromEntries([...(challenge ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, k, v]) => [k, v]));
  const url = new URL(parameters.realm ?? '');
  url.searchParams.set('service', parameters.service ?? '');
  for (const scope of parameters.scope?.split(' ') ?? []) url.searchParams.append('scope', scope);
  const client = ociClient(url.origin, basicAuth(password));
  try {
    const { status, body } = await client.send('GET', url.pathname + url.search);
    if (status !== 200) throw new Error(`the token endpoint returned ${status}: ${body}`);
    return JSON.parse(body.toString('utf8')).token;
  } finally {
    client.close();
  }
}

export const buildManifest = (value: { readonly mediaType: string }): Manifest => {
  const bytes = Buffer.from(JSON.stringify(value));
  return { mediaType: value.mediaType, bytes, digest: digestOf(bytes) };
};

export const descriptorFor = (mediaType: string, content: Uint8Array) => ({
  mediaType,
  digest: digestOf(content),
  size: content.length,
});

/** Builds an image: its manifest, its blobs and the sum of their sizes. */
export function buildImage(architecture: string, ...layers: readonly Buffer[]) {
  const config = Buffer.from(JSON.stringify({ os: 'linux', architecture, rootfs: { type: 'layers', diff_ids: [] } }));
  const manifest = buildManifest({
    schemaVersion: 2,
    mediaType: IMAGE,
    config: descriptorFor(CONFIG, config),
    layers: layers.map((layer) => descriptorFor(LAYER, layer)),
  } as { mediaType: string });
  return {
    manifest,
    blobs: [config, ...layers],
    size: [config, ...layers].reduce((sum, { length }) => sum + length, 0),
  };
}

/** Builds an index of linux images by architecture. */
export const buildIndex = (images: Readonly<Record<string, Manifest>>): Manifest =>
  buildManifest({
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: Object.entries(images).map(([architecture, { mediaType, bytes }]) => ({
      ...descriptorFor(mediaType, bytes),
      platform: { os: 'linux', architecture },
    })),
  } as { mediaType: string });

/** Pushes a small image. Its layer consists of `text`. */
export async function pushImage(
  client: OciClient,
  name: string,
  tag: string,
  text = `${name}:${tag}`,
): Promise<Manifest> {
  const { manifest, blobs } = buildImage('amd64', Buffer.from(text));
  for (const blob of blobs) await client.pushBlob(name, blob);
  await client.pushManifest(name, tag, manifest);
  return manifest;
}
