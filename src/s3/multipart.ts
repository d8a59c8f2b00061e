import { text } from 'node:stream/consumers';
import { responseError } from './errors.ts';
import type { S3Location } from './location.ts';
import type { Send } from './request.ts';
import { childrenOf, escapeXml, parseXml, textOf, type XmlElement } from './xml.ts';

/** An upload of several parts that was begun. */
export interface MultipartUpload {
  /** Without the prefix of the location. */
  readonly key: string;
  readonly uploadId: string;
  /** Milliseconds since the epoch. */
  readonly begun: number;
}

/** The smallest size of a part, except the last, is 5 MiB. At most two parts are in memory. */
const FIRST_PARTS_BYTES = 8 * 1024 * 1024;
/** S3 permits 10,000 parts. The parts grow, so that they suffice for the largest object, which has 5 TiB. */
const PARTS_OF_ONE_SIZE = 500;
const GROWTH = 1.4;

/** The size of part `number`, which counts from 1. */
export const partBytes = (number: number): number =>
  Math.round(FIRST_PARTS_BYTES * GROWTH ** Math.floor((number - 1) / PARTS_OF_ONE_SIZE));

export function createMultipart(send: Send, location: S3Location) {
  async function begin(key: string): Promise<string> {
    const xml = parseXml(await text(await send({ method: 'POST', key, query: { uploads: '' } })));
    return textOf(xml, 'UploadId') ?? '';
  }

  async function sendPart(key: string, uploadId: string, number: number, body: Uint8Array): Promise<string> {
    const response = await send({ method: 'PUT', key, query: { partNumber: String(number), uploadId }, body });
    await text(response);
    return response.headers.etag ?? '';
  }

  async function complete(key: string, uploadId: string, etags: readonly string[]): Promise<void> {
    const parts = etags.map(
      (etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
    );
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`);
    const result = parseXml(await text(await send({ method: 'POST', key, query: { uploadId }, body })));
    // The status is sent before the parts are joined, so that an error can follow in a response with status 200.
    if (result?.name === 'Error') throw completionError(key, result);
  }

  function completionError(key: string, error: XmlElement): Error {
    const { bucket, prefix, region, endpoint } = location;
    const details = { code: textOf(error, 'Code') ?? '', message: textOf(error, 'Message') ?? '' };
    return responseError(
      { method: 'POST', bucket, key: prefix + key, endpoint: endpoint.origin, region },
      500,
      details,
    );
  }

  const abort = async ({ key, uploadId }: Pick<MultipartUpload, 'key' | 'uploadId'>): Promise<void> =>
    void (await text(await send({ method: 'DELETE', key, query: { uploadId } })));

  return {
    abort,

    async upload(key: string, source: AsyncIterable<Uint8Array>): Promise<void> {
      const etags: string[] = [];
      let uploadId: string | undefined;
      let sending: Promise<unknown> = Promise.resolve();
      try {
        let number = 1;
        for await (const { part, isLast } of splitIntoParts(source)) {
          if (isLast && number === 1) {
            await text(await send({ method: 'PUT', key, body: part }));
            return;
          }
          uploadId ??= await begin(key);
          await sending;
          const [id, index] = [uploadId, number];
          sending = sendPart(key, id, index, part).then((etag) => {
            etags[index - 1] = etag;
          });
          // Awaited with the next part. A failure before that must not be an unhandled rejection.
          sending.catch(() => {});
          number++;
        }
        await sending;
        await complete(key, uploadId as string, etags);
      } catch (error) {
        if (uploadId !== undefined) await abort({ key, uploadId }).catch(() => {});
        throw error;
      }
    },

    async *unfinished(prefix = ''): AsyncGenerator<MultipartUpload> {
      let marker: Record<string, string> | undefined = {};
      while (marker !== undefined) {
        const query: Record<string, string> = { uploads: '', prefix: location.prefix + prefix, ...marker };
        const page: XmlElement | undefined = parseXml(await text(await send({ method: 'GET', query })));
        for (const upload of childrenOf(page, 'Upload')) {
          yield {
            key: (textOf(upload, 'Key') ?? '').slice(location.prefix.length),
            uploadId: textOf(upload, 'UploadId') ?? '',
            begun: Date.parse(textOf(upload, 'Initiated') ?? ''),
          };
        }
        const isTruncated = textOf(page, 'IsTruncated') === 'true';
        marker = isTruncated
          ? {
              'key-marker': textOf(page, 'NextKeyMarker') ?? '',
              'upload-id-marker': textOf(page, 'NextUploadIdMarker') ?? '',
            }
          : undefined;
      }
    },
  };
}

/** Joins and splits the chunks of a source into parts. An empty source has one empty part. */
export async function* splitIntoParts(
  source: AsyncIterable<Uint8Array>,
  sizeOf: (number: number) => number = partBytes,
): AsyncGenerator<{ readonly part: Uint8Array; readonly isLast: boolean }> {
  let number = 1;
  let part = Buffer.allocUnsafe(sizeOf(number));
  let filled = 0;
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; ) {
      if (filled === part.length) {
        yield { part, isLast: false };
        part = Buffer.allocUnsafe(sizeOf(++number));
        filled = 0;
      }
      const length = Math.min(part.length - filled, chunk.length - at);
      part.set(chunk.subarray(at, at + length), filled);
      filled += length;
      at += length;
    }
  }
  yield { part: part.subarray(0, filled), isLast: true };
}
