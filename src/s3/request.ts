import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as SecureAgent } from 'node:https';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionError, isTransient, responseError, type S3Error } from './errors.ts';
import type { S3Location } from './location.ts';
import { type Credentials, encodePath, encodeQuery, sha256Hex, signedHeaders, UNSIGNED_PAYLOAD } from './signature.ts';
import { parseXml, textOf } from './xml.ts';

/** A body that is sent as it is read. `open` is called again for each retry. */
export interface StreamBody {
  readonly length: number;
  /** In hex. Without it the signature does not cover the body. */
  readonly sha256?: string | undefined;
  open(): AsyncIterable<Uint8Array>;
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** The key without the prefix of the location; undefined for the bucket itself. */
  readonly key?: string | undefined;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | StreamBody | undefined;
}

export interface RequestOptions {
  readonly location: S3Location;
  readonly credentials: Credentials;
  readonly clock?: () => number;
  /** The delay before the first retry. It doubles with each further one. */
  readonly retryMs?: number;
  readonly attempts?: number;
  /** A connection on which nothing arrives and nothing can be sent for this long has failed. */
  readonly idleMs?: number;
}

/** Sends a request, with retries. The body of the response must be read or destroyed. */
export type Send = (request: S3Request) => Promise<IncomingMessage>;

export interface Connection {
  readonly send: Send;
  close(): void;
}

const EMPTY = new Uint8Array();
const MAX_ERROR_TEXT = 64 * 1024;

export function connectS3(options: RequestOptions): Connection {
  const { location, credentials, clock = Date.now, retryMs = 200, attempts = 6, idleMs = 60_000 } = options;
  const { endpoint, bucket, prefix, region, isPathStyle } = location;
  const isSecure = endpoint.protocol === 'https:';
  const agent = new (isSecure ? SecureAgent : Agent)({ keepAlive: true, maxSockets: 32 });
  const hostname = isPathStyle ? endpoint.hostname : `${bucket}.${endpoint.hostname}`;
  const host = endpoint.port ? `${hostname}:${endpoint.port}` : hostname;

  async function sendOnce({
    method,
    key,
    query = {},
    headers = {},
    body = EMPTY,
  }: S3Request): Promise<IncomingMessage> {
    const fullKey = key === undefined ? '' : prefix + key;
    const path = `/${encodePath(isPathStyle ? (key === undefined ? bucket : `${bucket}/${fullKey}`) : fullKey)}`;
    const payloadHash = body instanceof Uint8Array ? sha256Hex(body) : (body.sha256 ?? UNSIGNED_PAYLOAD);
    const signed = signedHeaders(
      { method, path, query, headers: { ...headers, host, 'x-amz-content-sha256': payloadHash } },
      { credentials, region, now: clock() },
    );
    const encodedQuery = encodeQuery(query);
    const failed = { method, bucket, key: fullKey, endpoint: endpoint.origin, region };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = (isSecure ? requestHttps : requestHttp)({
        ...{ agent, method, hostname: hostname.replace(/^\[|\]$/g, ''), timeout: idleMs },
        ...(endpoint.port && { port: endpoint.port }),
        path: encodedQuery ? `${path}?${encodedQuery}` : path,
        headers: { ...signed, 'content-length': String(body.length) },
      });
      outgoing.on('response', resolve);
      outgoing.on('timeout', () => outgoing.destroy(new Error(`nothing was transferred for ${idleMs / 1000} s`)));
      outgoing.on('error', (cause) => reject(connectionError(failed, cause)));
      if (body instanceof Uint8Array) outgoing.end(body);
      else {
        const source = Readable.from(body.open(), { objectMode: false });
        // An error of the source is the caller's, and a retry would not help.
        source.on('error', (error) => {
          reject(error);
          outgoing.destroy();
        });
        outgoing.on('close', () => source.destroy());
        source.pipe(outgoing);
      }
    });
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw await readError(response, (details) => responseError(failed, status, details));
  }

  return {
    async send(request) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await sendOnce(request);
        } catch (error) {
          if (!isTransient(error) || attempt >= attempts) throw error;
          // Full jitter, so that concurrent requests do not retry at the same moment.
          await sleep(Math.random() * retryMs * 2 ** attempt);
        }
      }
    },
    close: () => agent.destroy(),
  };
}

interface ErrorDetails {
  readonly code: string;
  readonly message: string;
  readonly region: string | undefined;
}

async function readError(response: IncomingMessage, toError: (details: ErrorDetails) => S3Error): Promise<S3Error> {
  // Some servers respond before the request was sent. They close the connection, which must not hide the error.
  const content = await text(response).catch(() => '');
  const xml = parseXml(content.slice(0, MAX_ERROR_TEXT));
  return toError({
    code: textOf(xml, 'Code') ?? '',
    message: textOf(xml, 'Message') ?? '',
    region: response.headers['x-amz-bucket-region']?.toString(),
  });
}
