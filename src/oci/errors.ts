import type { OutgoingHttpHeaders } from 'node:http';
import { ApiError, Code, retryAfterOf } from '../base/errors.ts';
import { BlobError } from '../blobs/errors.ts';
import { type RegistryCode, RegistryError } from '../domains/registry/errors.ts';
import { isDiskFull } from '../store/errors.ts';

/** UNKNOWN and UNAVAILABLE are from Docker's registry specification, the predecessor of OCI's. */
export type OciCode = RegistryCode | 'UNKNOWN' | 'UNAVAILABLE';

/** An error as clients get it. */
export class OciError extends Error {
  override readonly name = 'OciError';
  readonly status: number;
  readonly code: OciCode;
  readonly detail: unknown;
  readonly headers: OutgoingHttpHeaders;

  constructor(
    code: OciCode,
    message: string,
    { status = statuses[code], detail, headers = {} }: { status?: number; detail?: unknown; headers?: object } = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.headers = headers as OutgoingHttpHeaders;
  }
}

const statuses: Readonly<Record<OciCode, number>> = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DENIED: 403,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 400,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  SIZE_INVALID: 400,
  TAG_INVALID: 400,
  TOOMANYREQUESTS: 429,
  UNAUTHORIZED: 401,
  UNAVAILABLE: 503,
  UNKNOWN: 500,
  UNSUPPORTED: 405,
};

export const errorBody = ({ code, message, detail }: OciError): string =>
  JSON.stringify({ errors: [{ code, message, ...(detail !== undefined && { detail }) }] });

/** Turns anything that was thrown into an error for the client. Internal causes are not revealed. */
export function asOciError(thrown: unknown): OciError {
  if (thrown instanceof OciError) return thrown;
  if (thrown instanceof RegistryError) return new OciError(thrown.code, thrown.message, { detail: thrown.detail });
  if (thrown instanceof BlobError) return fromBlobError(thrown);
  if (thrown instanceof ApiError) return fromApiError(thrown);
  return internal();
}

const internal = (): OciError =>
  new OciError('UNKNOWN', 'the server could not answer this request; its log has the reason under this request id');

function fromBlobError({ failure, message }: BlobError): OciError {
  switch (failure.reason) {
    case 'invalid':
    case 'mismatch':
      return new OciError('DIGEST_INVALID', message);
    case 'unknown':
      return new OciError(failure.kind === 'blob' ? 'BLOB_UNKNOWN' : 'BLOB_UPLOAD_UNKNOWN', message);
    case 'range':
      // RFC 9110, section 15.5.17.
      return new OciError('SIZE_INVALID', message, {
        status: 416,
        headers: { 'content-range': `bytes */${failure.size}` },
      });
    case 'offset':
      return new OciError('BLOB_UPLOAD_INVALID', message, { status: 416 });
    case 'busy':
      return new OciError('BLOB_UPLOAD_INVALID', message, { status: 409 });
    case 'interrupted':
      return new OciError('BLOB_UPLOAD_INVALID', message, { status: 408 });
    case 'large':
      return new OciError('SIZE_INVALID', message, { status: 413 });
    case 'full':
      return new OciError('UNKNOWN', message, { status: 507 });
    case 'failed':
      return new OciError('UNKNOWN', message);
  }
}

/** The message of an ApiError without the name of its code, which the OCI code replaces. */
const messageOf = ({ message }: ApiError): string => message.replace(/^[A-Z][a-z ]+: /, '');

function fromApiError(error: ApiError): OciError {
  if (isDiskFull(error)) return new OciError('UNKNOWN', messageOf(error), { status: 507 });
  switch (error.code) {
    case Code.UNAUTHENTICATED:
      return new OciError('UNAUTHORIZED', messageOf(error));
    case Code.PERMISSION_DENIED:
      return new OciError('DENIED', messageOf(error));
    case Code.NOT_FOUND:
      return new OciError('NAME_UNKNOWN', messageOf(error));
    case Code.INVALID_ARGUMENT:
    case Code.FAILED_PRECONDITION:
      return new OciError('NAME_INVALID', messageOf(error));
    case Code.RESOURCE_EXHAUSTED:
      return tooManyRequests(error);
    case Code.ABORTED:
    case Code.ALREADY_EXISTS:
    case Code.UNAVAILABLE:
    case Code.DEADLINE_EXCEEDED:
      return new OciError('UNAVAILABLE', messageOf(error), { headers: { 'retry-after': '1' } });
    default:
      return internal();
  }
}

function tooManyRequests(error: ApiError): OciError {
  const retryAfter = retryAfterOf(error);
  const quota = error.details.find((detail) => detail.type === 'QuotaFailure');
  return new OciError('TOOMANYREQUESTS', messageOf(error), {
    detail: quota && { violations: quota.violations },
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  });
}

const codes: Readonly<Record<number, Code>> = {
  400: Code.INVALID_ARGUMENT,
  401: Code.UNAUTHENTICATED,
  403: Code.PERMISSION_DENIED,
  404: Code.NOT_FOUND,
  405: Code.UNIMPLEMENTED,
  408: Code.CANCELLED,
  409: Code.ABORTED,
  413: Code.RESOURCE_EXHAUSTED,
  416: Code.OUT_OF_RANGE,
  429: Code.RESOURCE_EXHAUSTED,
  503: Code.UNAVAILABLE,
  507: Code.RESOURCE_EXHAUSTED,
};

/** The code that log lines and metrics show for an HTTP status. */
export const codeOf = (status: number): Code => (status < 400 ? Code.OK : (codes[status] ?? Code.INTERNAL));
