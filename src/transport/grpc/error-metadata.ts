import { toBinary } from '@bufbuild/protobuf';
import { Metadata, type StatusObject } from '@grpc/grpc-js';
import { ApiError, type Detail, retryAfterOf } from '../../base/errors.ts';
import { StatusSchema } from '../../contract/gen/google/rpc/status_pb.js';
import { type ErrorContext, toStatus } from '../error-status.ts';

/**
 * The limit for message and details as they are sent. The strictest clients (C++, Python, Java) accept 8 KiB of headers
 * by default. Above that, they see a broken connection instead of an error.
 */
const HEADER_BYTES = 7 * 1024;
/** Percent-encoding triples a message at most, base64 adds a third to the details. */
const SHORT_MESSAGE_BYTES = 512;
const SHORT_DETAILS_BYTES = 3 * 1024;
const SHORT_TEXT_BYTES = 256;

/** The gRPC status of an error: code, message, and in `grpc-status-details-bin` the same details as over REST. */
export function grpcStatusOf(error: ApiError, context: ErrorContext): StatusObject {
  // The length is checked first, because V8 runs out of memory when it percent-encodes a huge text.
  const full = error.message.length > HEADER_BYTES ? undefined : encode(error, context);
  const { message, details } =
    full && size(full) <= HEADER_BYTES ? full : encode(shorten(error, SHORT_DETAILS_BYTES), context);
  const metadata = new Metadata();
  metadata.set('x-request-id', context.requestId);
  metadata.set('grpc-status-details-bin', details);
  const retryAfter = retryAfterOf(error);
  if (retryAfter !== undefined) metadata.set('retry-after', retryAfter);
  return { code: error.code, details: message, metadata };
}

interface EncodedError {
  readonly message: string;
  readonly details: Buffer;
}

const encode = (error: ApiError, context: ErrorContext): EncodedError => ({
  message: error.message.toWellFormed().replace(/\p{Cc}+/gu, ' '),
  details: Buffer.from(toBinary(StatusSchema, toStatus(error, context))),
});

const size = ({ message, details }: EncodedError): number =>
  encodeURI(message).length + Math.ceil(details.byteLength / 3) * 4;

/** Shortens the texts of an error, and keeps only the first violations that fit into `bytes`. */
export function shorten(error: ApiError, bytes: number): ApiError {
  let remaining = bytes;
  const fits = (texts: object): boolean => {
    for (const text of Object.values(texts)) remaining -= Buffer.byteLength(text) + 4;
    remaining -= 4;
    return remaining >= 0;
  };
  const shortenDetail = (detail: Detail): Detail => {
    switch (detail.type) {
      case 'BadRequest':
        return { ...detail, fieldViolations: detail.fieldViolations.map(clipAll).filter(fits) };
      case 'PreconditionFailure':
        return { ...detail, violations: detail.violations.map(clipAll).filter(fits) };
      case 'QuotaFailure':
        return { ...detail, violations: detail.violations.map(clipAll).filter(fits) };
      case 'TermsNotAccepted':
        return { ...detail, missing: detail.missing.map(clipAll).filter(fits) };
      case 'ResourceInfo':
        return clipAll(detail);
      case 'RetryInfo':
        return detail;
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

/** Does not cut a character in half. */
function clip(text: string, bytes: number): string {
  const encoded = Buffer.from(text);
  if (encoded.byteLength <= bytes) return text;
  return `${encoded.toString('utf8', 0, bytes - ELLIPSIS_BYTES).replace(/\ufffd+$/, '')}${ELLIPSIS}`;
}

const ELLIPSIS = '…';
const ELLIPSIS_BYTES = Buffer.byteLength(ELLIPSIS);
