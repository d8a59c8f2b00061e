import type { IncomingMessage } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionError, isConditionFailed, isMissing, isTransient, S3Error } from './errors.ts';
import { createMultipart, type MultipartUpload } from './multipart.ts';
import { connectS3, type RequestOptions, type StreamBody } from './request.ts';
import { childrenOf, parseXml, textOf } from './xml.ts';

export type { StreamBody } from './request.ts';

/** An object in a list. */
export interface S3Object {
  /** Without the prefix of the location. */
  readonly key: string;
  readonly size: number;
  readonly etag: string;
}

export interface ObjectInfo {
  readonly size: number;
  readonly etag: string;
}

export interface ByteRange {
  /** Both ends are inclusive. */
  readonly start: number;
  readonly end?: number | undefined;
}

/**
 * A client for the objects below a location of S3. Keys are relative to its prefix. Requests that fail because of the
 * connection or an overloaded server are retried with backoff.
 */
export interface S3Client {
  /** Stores an object. With `ifAbsent`, returns false if the object exists already. At most 5 GiB. */
  put(key: string, body: Uint8Array | StreamBody, options?: { readonly ifAbsent?: boolean }): Promise<boolean>;
  /** Stores an object of any size and unknown length. The object appears when all of `source` was read. */
  upload(key: string, source: AsyncIterable<Uint8Array>): Promise<void>;
  /** Returns undefined if the object does not exist. */
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Returns undefined if the object does not exist. For small objects. */
  get(key: string, range?: ByteRange): Promise<Buffer | undefined>;
  /** Reads an object of any size. Continues where a connection broke. Throws an S3Error if it does not exist. */
  read(key: string, range?: ByteRange): AsyncGenerator<Uint8Array>;
  /** Lists the objects whose key begins with `prefix`, in bytewise order of their keys. */
  list(prefix?: string): AsyncGenerator<S3Object>;
  /** Succeeds also if the object does not exist. */
  remove(key: string): Promise<void>;
  /** Lists uploads of several parts that were neither completed nor aborted. */
  unfinishedUploads(prefix?: string): AsyncGenerator<MultipartUpload>;
  abortUpload(upload: MultipartUpload): Promise<void>;
  close(): void;
}

const READ_ATTEMPTS = 5;

export function createS3Client(options: RequestOptions): S3Client {
  const { location, retryMs = 200 } = options;
  const { send, close } = connectS3(options);
  const multipart = createMultipart(send, location);

  async function get(key: string, range?: ByteRange, etag?: string): Promise<IncomingMessage> {
    const headers = { ...(range && { range: rangeHeader(range) }), ...(etag && { 'if-match': etag }) };
    return send({ method: 'GET', key, headers });
  }

  return {
    async put(key, body, { ifAbsent = false } = {}) {
      try {
        const headers = { ...(ifAbsent && { 'if-none-match': '*' }) };
        await discard(await send({ method: 'PUT', key, body, headers }));
        return true;
      } catch (error) {
        if (ifAbsent && isConditionFailed(error)) return false;
        throw error;
      }
    },

    upload: multipart.upload,

    async head(key) {
      try {
        const response = await send({ method: 'HEAD', key });
        await discard(response);
        return infoOf(response);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },

    async get(key, range) {
      try {
        return await buffer(await get(key, range));
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },

    async *read(key, { start = 0, end } = { start: 0 }) {
      let position = start;
      let etag: string | undefined;
      for (let failures = 0; ; ) {
        const isWhole = position === 0 && end === undefined;
        const response = await get(key, isWhole ? undefined : { start: position, end }, etag);
        const total = Number(response.headers['content-length']) + position;
        etag = response.headers.etag?.toString();
        try {
          for await (const chunk of response) {
            position += chunk.length;
            failures = 0;
            yield chunk;
          }
          if (!(position < total)) return;
          throw new Error('the connection was closed early');
        } catch (cause) {
          if (position >= total) return;
          const { bucket, prefix, region, endpoint } = location;
          const failed = { method: 'GET', bucket, key: prefix + key, region, endpoint: endpoint.origin };
          const error = cause instanceof S3Error ? cause : connectionError(failed, cause);
          if (!isTransient(error) || ++failures >= READ_ATTEMPTS) throw error;
          await sleep(retryMs * 2 ** failures);
        }
      }
    },

    async *list(prefix = '') {
      let token: string | undefined;
      do {
        const page = await sendList(prefix, token);
        const isEncoded = textOf(page, 'EncodingType') === 'url';
        for (const item of childrenOf(page, 'Contents')) {
          const key = textOf(item, 'Key') ?? '';
          yield {
            key: (isEncoded ? decodeKey(key) : key).slice(location.prefix.length),
            size: Number(textOf(item, 'Size')),
            etag: textOf(item, 'ETag') ?? '',
          };
        }
        token = textOf(page, 'IsTruncated') === 'true' ? textOf(page, 'NextContinuationToken') : undefined;
      } while (token !== undefined);
    },

    async remove(key) {
      try {
        await discard(await send({ method: 'DELETE', key }));
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },

    unfinishedUploads: multipart.unfinished,
    abortUpload: multipart.abort,
    close,
  };

  async function sendList(prefix: string, token: string | undefined) {
    const response = await send({
      method: 'GET',
      query: {
        'list-type': '2',
        'encoding-type': 'url',
        prefix: location.prefix + prefix,
        ...(token !== undefined && { 'continuation-token': token }),
      },
    });
    return parseXml(await text(response));
  }
}

const rangeHeader = ({ start, end }: ByteRange): string => `bytes=${start}-${end ?? ''}`;

const infoOf = ({ headers }: IncomingMessage): ObjectInfo => ({
  size: Number(headers['content-length']),
  etag: headers.etag?.toString() ?? '',
});

/** Keys in lists are encoded as in a form. */
export const decodeKey = (key: string): string => decodeURIComponent(key.replaceAll('+', ' '));

/** Reads a response to its end, so that the connection can be used again. */
export const discard = async (response: IncomingMessage): Promise<void> => void (await buffer(response));
