import { toBinary } from '@bufbuild/protobuf';
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import { ApiError, type Detail } from '../../base/errors.ts';
import { StatusSchema } from '../../contract/gen/google/rpc/status_pb.js';
import { type ErrorContext, toStatus } from '../error-status.ts';

/**
 * For message and details as they travel. The strictest clients (C++, Python, Java) take 8 KiB of headers
 * by default; what is above that would reach them as a broken connection instead of an error.
 */
const HEADER_BYTES = 7 * 1024;
/** Percent-encoding makes a message up to three times as long, base64 makes details a third longer. */
const SHORT_MESSAGE_BYTES = 512;
const SHORT_DETAILS_BYTES = 3 * 1024;
const SHORT_TEXT_BYTES = 256;

/** An error as gRPC sends it: code, message and the typed details of REST in `grpc-status-details-bin`. */
export function failure(error: ApiError, context: ErrorContext): StatusObject {
  // V8 dies of percent-encoding a huge text, so look at the length before anything else.
  const whole = error.message.length > HEADER_BYTES ? undefined : encode(error, context);
  const { message, details } =
    whole && size(whole) <= HEADER_BYTES ? whole : encode(shorten(error, SHORT_DETAILS_BYTES), context);
  const metadata = new Metadata();
  metadata.set('x-request-id', context.requestId);
  metadata.set('grpc-status-details-bin', details);
  return { code: error.code, details: message, metadata };
}

interface Encoded {
  readonly message: string;
  readonly details: Buffer;
}

const encode = (error: ApiError, context: ErrorContext): Encoded => ({
  message: error.message.toWellFormed().replace(/\p{Cc}+/gu, ' '),
  details: Buffer.from(toBinary(StatusSchema, toStatus(error, context))),
});

const size = ({ message, details }: Encoded): number =>
  encodeURI(message).length + Math.ceil(details.byteLength / 3) * 4;

/** The same error with long texts clipped and only as many violations, first ones first, as `bytes` hold. */
export function shorten(error: ApiError, bytes: number): ApiError {
  let left = bytes;
  const fits = (texts: object): boolean => {
    for (const text of Object.values(texts)) left -= Buffer.byteLength(text) + 4;
    left -= 4;
    return left >= 0;
  };
  const shortenDetail = (detail: Detail): Detail => {
    switch (detail.type) {
      case 'BadRequest':
        return { ...detail, fieldViolations: detail.fieldViolations.map(clipAll).filter(fits) };
      case 'PreconditionFailure':
        return { ...detail, violations: detail.violations.map(clipAll).filter(fits) };
      case 'ResourceInfo':
        return clipAll(detail);
    }
  };
  return new ApiError(
    error.code,
    clip(error.message, SHORT_MESSAGE_BYTES),
    error.details.map(shortenDetail),
    clipAll(error.metadata),
  );
}

const clipAll = <T extends { readonly [K in keyof T]: string }>(texts: T): T =>
  Object.fromEntries(Object.entries<string>(texts).map(([key, text]) => [key, clip(text, SHORT_TEXT_BYTES)])) as T;

/** Never ends in half a character. */
function clip(text: string, bytes: number): string {
  const encoded = Buffer.from(text);
  if (encoded.byteLength <= bytes) return text;
  return `${encoded.toString('utf8', 0, bytes - ELLIPSIS_BYTES).replace(/\ufffd+$/, '')}${ELLIPSIS}`;
}

const ELLIPSIS = '…';
const ELLIPSIS_BYTES = Buffer.byteLength(ELLIPSIS);
